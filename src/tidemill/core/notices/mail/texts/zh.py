"""The letters in simplified Chinese."""

from tidemill.core.notices.mail.letters import LetterKind
from tidemill.core.notices.mail.wording import Template, Wording

LETTERS = {
    LetterKind.CONFIRM_ADDRESS: Template(
        subject="请确认您在 {pool} 的邮箱地址",
        paragraphs=(
            "欢迎您！只差一步：请确认这个邮箱地址是您的。",
            "{link}",
            "也可以在要求输入验证码的页面上输入：",
            "{code}",
            "链接和验证码只能使用一次，并且会在一段时间后失效。",
            "如果您没有在 {pool} 注册，请忽略这封邮件：未经您确认，任何人都无法使用这个地址。",
        ),
        button="确认邮箱地址",
    ),
    LetterKind.ADDRESS_TAKEN: Template(
        subject="您在 {pool} 已有账户",
        paragraphs=(
            "刚才有人试图用这个邮箱地址在 {pool} 注册。该地址已属于您的账户，因此没有任何改动。",
            "如果是您本人，直接登录即可。如果忘记了密码，可以在登录页面重新设置。",
            "{link}",
            "如果不是您本人，无需任何操作：对方没有得到您账户的任何信息。",
        ),
        button="登录",
    ),
    LetterKind.RESET_PASSWORD: Template(
        subject="重新设置您在 {pool} 的密码",
        paragraphs=(
            "您申请了重新设置密码。请点击这里设置新密码：",
            "{link}",
            "也可以在要求输入验证码的页面上输入：",
            "{code}",
            "链接和验证码只能使用一次，并且会在一段时间后失效。在此之前，原密码仍然有效。",
            "如果不是您本人申请的，请忽略这封邮件：您的密码不会改变。请勿将验证码告诉任何人。",
        ),
        button="设置新密码",
    ),
    LetterKind.NO_ACCOUNT: Template(
        subject="{pool} 没有使用此地址的账户",
        paragraphs=(
            "有人在 {pool} 为这个邮箱地址申请重新设置密码，但没有账户使用该地址。",
            "如果是您本人，您可能是用其他地址注册的，请换那个地址再试。",
            "如果不是您本人，无需任何操作。我们没有保存您的任何资料，今天您也不会再收到这样的邮件。",
        ),
    ),
    LetterKind.PASSWORD_CHANGED: Template(
        subject="您在 {pool} 的密码已更改",
        paragraphs=(
            "您的密码已于 {at}更改，其他所有会话均已结束。",
            "如果是您本人，一切正常。",
            "如果不是您本人，请立即设置新密码，并检查您的密钥和会话：",
            "{link}",
        ),
        button="不是我本人",
    ),
    LetterKind.CONFIRM_NEW_ADDRESS: Template(
        subject="请确认您在 {pool} 的新邮箱地址",
        paragraphs=(
            "您希望今后在账户中使用这个邮箱地址。请确认它是您的：",
            "{link}",
            "也可以在要求输入验证码的页面上输入：",
            "{code}",
            "在您确认之前，原地址继续有效。链接和验证码只能使用一次，并且会在一段时间后失效。",
            "如果您对此毫不知情，请忽略这封邮件：您的地址不会被使用。",
        ),
        button="确认新地址",
    ),
    LetterKind.ADDRESS_CHANGED: Template(
        subject="您在 {pool} 的账户邮箱地址已更改",
        paragraphs=(
            "您账户的邮箱地址已于 {at}更改为 {new_address}。今后的邮件将发送到新地址。",
            "如果是您本人，一切正常。",
            "如果不是您本人，可能有人正在使用您的账户。请尽快在这里找回：",
            "{link}",
        ),
        button="不是我本人",
    ),
    LetterKind.SECOND_FACTOR_ON: Template(
        subject="您在 {pool} 的账户已开启两步验证",
        paragraphs=(
            "您已于 {at}开启两步验证。今后登录时，除密码外还需要输入验证器应用中的验证码。",
            "请妥善保管恢复码：设备丢失时，可以用它们登录。",
            "如果不是您本人，说明有人知道您的密码：请立即在登录页面点击“忘记密码”，并联系运营者。",
        ),
    ),
    LetterKind.SECOND_FACTOR_OFF: Template(
        subject="您在 {pool} 的账户已关闭两步验证",
        paragraphs=(
            "两步验证已于 {at}关闭。现在只需密码即可登录。",
            "如果是您本人，一切正常；您可以随时重新开启。",
            "如果不是您本人，请立即设置新密码，并重新开启两步验证：",
            "{link}",
        ),
        button="保护我的账户",
    ),
    LetterKind.RECOVERY_CODE_USED: Template(
        subject="您在 {pool} 的账户使用了一个恢复码",
        paragraphs=(
            "有人于 {at}使用恢复码登录了您的账户。您还剩 {left} 个恢复码。",
            "如果所剩不多，请在账户设置中生成新的恢复码。",
            "如果不是您本人，请立即设置新密码并生成新的恢复码：旧的恢复码将随即失效。",
        ),
    ),
    LetterKind.NEW_LOGIN: Template(
        subject="您在 {pool} 的账户有新的登录",
        paragraphs=(
            "有人从我们未曾见过的地方登录了您的账户。",
            "设备：{device}",
            "IP 地址：{address}",
            "时间：{at}",
            "如果是您本人，一切正常。",
            "如果不是您本人，请结束该会话并设置新密码：",
            "{link}",
        ),
        button="查看我的会话",
    ),
    LetterKind.ACCOUNT_LOCKED: Template(
        subject="您在 {pool} 的账户暂时限制登录",
        paragraphs=(
            "有人从 IP 地址 {address} 输入了 {tries} 次错误密码。为了保护您，在 {until}之前，"
            "无法从该地址登录您的账户。",
            "如果是您本人，请稍后再试，或在登录页面点击“忘记密码”设置新密码。",
            "如果不是您本人，无需任何操作：您的密码没有被猜中。开启两步验证可以让账户更加安全。",
        ),
    ),
    LetterKind.GUESSING: Template(
        subject="有人在尝试猜测您在 {pool} 的密码",
        paragraphs=(
            "有人从多个地方对您的账户输入了 {tries} 次错误的密码或验证码。在 {until}之前，"
            "只有您曾经登录过的地方可以登录。",
            "使用密码和两步验证码，您可以从任何地方登录。如果没有开启两步验证，请通过邮件设置新密码，"
            "并从同一个地方登录：",
            "{link}",
        ),
        button="设置新密码",
    ),
    LetterKind.KEY_MADE: Template(
        subject="您在 {pool} 的账户创建了新密钥",
        paragraphs=(
            "{at}，您的账户创建了一个可以使用该账户的密钥。",
            "名称：{name}",
            "开头为：{prefix}",
            "如果是您本人，一切正常。请保管好密钥：持有者可以代表您操作。",
            "如果不是您本人，请撤销该密钥并设置新密码：",
            "{link}",
        ),
        button="查看我的密钥",
    ),
    LetterKind.NODE_JOINED: Template(
        subject="一台机器以您的名义加入了 {pool}",
        paragraphs=(
            "{at}，一台机器使用您的加入令牌加入了 {pool}。它的收益归您，它的行为也由您负责。",
            "节点：{node}",
            "加入令牌：{token}",
            "来源地址：{address}",
            "如果是您的机器，一切正常。一小时内使用同一令牌加入的其他机器不再另行通知。",
            "如果不是您的机器，请撤销该令牌并移除该节点：",
            "{link}",
        ),
        button="查看我的账户",
    ),
    LetterKind.ACCOUNT_BLOCKED: Template(
        subject="您在 {pool} 的账户已被封禁",
        paragraphs=(
            "运营者已封禁您的账户。您暂时无法登录，密钥也暂时无法使用。您的资金仍归您所有。",
            "原因：{reason}",
            "如果您认为这是误会，请联系运营者。",
        ),
    ),
    LetterKind.ACCOUNT_UNBLOCKED: Template(
        subject="您在 {pool} 的账户已解除封禁",
        paragraphs=(
            "好消息：您的账户已解除封禁。您可以登录，密钥也恢复使用。",
            "{link}",
        ),
        button="登录",
    ),
    LetterKind.ACCOUNT_DELETED: Template(
        subject="您在 {pool} 的账户已删除",
        paragraphs=(
            "您的账户已按您的要求于 {at}删除，其密钥和会话均已失效。这是关于该账户的最后一封邮件。",
            "如果不是您本人，请立即联系运营者。",
            "感谢您曾与我们同行。",
        ),
    ),
    LetterKind.OPERATOR_MADE: Template(
        subject="您现在是 {pool} 的运营者",
        paragraphs=(
            "{pool} 的一位运营者已将您设为运营者。",
            "运营者登录时必须使用两步验证。如果您尚未开启，请在这里开启：",
            "{link}",
            "如果您没有预期这件事，请告知 {pool} 的运营者。",
        ),
        button="我的账户",
    ),
    LetterKind.STORAGE_UNPAID: Template(
        subject="您在 {pool} 保存的内容尚未付费",
        paragraphs=(
            "您在 {pool} 保存了 {kept} 字节的制品。其中 {free} 字节免费，其余部分按天收费，而您的余额已不足以支付。",
            "请充值，或删除不再需要的内容。{until}，我们将从最早的开始删除未付费的制品，直到剩余部分免费为止。未完成的作业所需的内容不会被删除。",
            "{link}",
        ),
        button="登录",
    ),
    LetterKind.TEST: Template(
        subject="来自 {pool} 的测试邮件",
        paragraphs=(
            "这封邮件于 {at}发出，用来检查邮件是否正常。一切正常。",
            "您无需任何操作。",
        ),
    ),
}

WORDING = Wording(
    letters=LETTERS,
    footer="这封邮件由 {pool}（{url}）自动发出。我们绝不会向您索要密码。",
    months=("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"),
    time="{year} 年 {month} 月 {day} 日 {clock}（UTC）",
    plural=lambda _: 0,
)
