"""`tidemill completion`: scripts that let a shell complete commands, options, and the ids of jobs, nodes and keys.

A script calls `tidemill complete -- WORD…` with the words of the line. Each line of the answer is a word, a tab and
what the word is; `:files` lets the shell offer files.
"""

from enum import StrEnum
from typing import Annotated

import typer

from tidemill.cli.terminal.output import AsJson, print_json, print_line


class Shell(StrEnum):
    """The shells whose language we speak."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_BASH = r"""# Completion of tidemill for bash
_tidemill() {
    local line word found=()
    COMPREPLY=()
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        if [ "$word" = ":files" ]; then
            compopt -o default 2>/dev/null
            COMPREPLY=()
            return
        fi
        if [ "$COMP_TYPE" = 63 ] && [ "$line" != "$word" ]; then
            found+=("$word  (${line#*$'\t'})") # only listed: nothing of it is put into the line
        else
            found+=("$word")
        fi
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [ ${#found[@]} -ne 1 ] || found=("${found[0]%%  (*}")
    COMPREPLY=("${found[@]}")
}
complete -F _tidemill tidemill
"""

_ZSH = r"""#compdef tidemill
# Completion of tidemill for zsh
_tidemill() {
    local line word meaning
    local -a found
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        meaning=${line#*$'\t'}
        if [[ $word == ":files" ]]; then
            _files
            return
        fi
        found+=("${word//:/\\:}:$meaning")
    done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe tidemill found
}
if [[ ${funcstack[1]} == _tidemill ]]; then
    _tidemill "$@"
else
    compdef _tidemill tidemill
fi
"""

_FISH = r"""# Completion of tidemill for fish
function __tidemill_complete
    set -l words (commandline -opc)
    set -l found ($words[1] complete -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test "$found[1]" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c tidemill -f -a '(__tidemill_complete)'
"""

_SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")], as_json: AsJson = False
) -> None:
    """Print the script that lets your shell complete words.

    Append it to ~/.bashrc or ~/.zshrc, or for fish write it to ~/.config/fish/completions/tidemill.fish, and open
    another terminal. Commands and options need no pool; ids are asked from the one you use.
    """
    if as_json:
        print_json({"shell": shell.value, "script": _SCRIPTS[shell]})
    else:
        print_line(_SCRIPTS[shell].rstrip("\n"))


Line = Annotated[list[str] | None, typer.Argument(metavar="WORD...", help="The line so far, without the program.")]


def complete(words: Line = None) -> None:
    """Say what the last of the words may become, for the scripts of shells."""
    from tidemill.cli.client.live_words import live_words
    from tidemill.cli.main import root_command
    from tidemill.cli.terminal.completion_words import suggestions

    for one in suggestions(root_command(), words or [""], live_words):
        print_line(f"{one.word}\t{one.meaning}" if one.meaning else one.word)
