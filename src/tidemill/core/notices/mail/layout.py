"""The one layout of all letters in HTML. Its inputs are already escaped.

Styles stand on the elements, since many mail programs drop style sheets; the sheet in the head only adapts colours to
dark screens. A link is also written out below its button, for readers who want to see where it leads.
"""

PAGE = """\
<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>{subject}</title>
<style>
@media (prefers-color-scheme: dark) {{
  .page {{ background: #14181d !important; }}
  .card {{ background: #1e242b !important; border-color: #333c46 !important; }}
  .ink {{ color: #e6ebf0 !important; }}
  .quiet {{ color: #9aa7b4 !important; }}
  .code {{ background: #14181d !important; color: #e6ebf0 !important; }}
  .button {{ background: #3d8bd4 !important; color: #08131f !important; }}
}}
</style>
</head>
<body class="page" style="margin:0;padding:0;background:#f2f5f8;">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" style="background:#f2f5f8;">
<tr><td align="center" style="padding:24px 12px;">
<table role="presentation" class="card" width="100%" cellpadding="0" cellspacing="0" style="max-width:560px;\
background:#ffffff;border:1px solid #dfe5eb;border-radius:8px;font-family:system-ui,-apple-system,'Segoe UI',Roboto,\
'Noto Sans','Noto Sans SC','PingFang SC','Microsoft YaHei',sans-serif;font-size:16px;line-height:1.5;">
<tr><td style="padding:28px 24px 0;"><h1 class="ink" style="margin:0 0 16px;font-size:21px;line-height:1.3;\
font-weight:600;color:#18222d;overflow-wrap:anywhere;">{subject}</h1></td></tr>
{blocks}
<tr><td style="padding:12px 24px 24px;"><p class="quiet" style="margin:0;font-size:13px;color:#5b6875;\
overflow-wrap:anywhere;">{footer}</p></td></tr>
</table>
</td></tr>
</table>
</body>
</html>
"""


def line(block: str) -> str:
    return f'<tr><td style="padding:0 24px;">{block}</td></tr>'


def paragraph(text: str) -> str:
    return f'<p class="ink" style="margin:0 0 16px;color:#18222d;overflow-wrap:anywhere;">{text}</p>'


def code(text: str) -> str:
    return (
        '<p class="code" style="margin:0 0 16px;padding:14px 12px;background:#f2f5f8;color:#18222d;border-radius:6px;'
        "text-align:center;font-family:ui-monospace,Consolas,Menlo,monospace;font-size:26px;letter-spacing:3px;"
        f'overflow-wrap:anywhere;">{text}</p>'
    )


def button(url: str, label: str) -> str:
    return (
        f'<p style="margin:4px 0 8px;"><a class="button" href="{url}" style="display:inline-block;padding:12px 22px;'
        "background:#14609f;color:#ffffff;border-radius:6px;font-weight:600;text-decoration:none;"
        f'">{label}</a></p>'
        '<p class="quiet" style="margin:0 0 16px;font-size:13px;color:#5b6875;overflow-wrap:anywhere;'
        f'word-break:break-all;">{url}</p>'
    )
