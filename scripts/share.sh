#!/bin/sh
# Has the tool print its man pages and completions: scripts/share.sh SOL TO fills TO as it goes under PREFIX/share.
set -e
sol=$1 to=$2
rm -rf "$to"
mkdir -p "$to/man/man1" "$to/bash-completion/completions" "$to/zsh/site-functions" "$to/fish/vendor_completions.d"
"$sol" man >"$to/man/man1/sol.1"
commands=$("$sol" commands)
for command in $commands; do "$sol" man "$command" >"$to/man/man1/sol-$command.1"; done
"$sol" completion bash >"$to/bash-completion/completions/sol"
"$sol" completion zsh >"$to/zsh/site-functions/_sol"
"$sol" completion fish >"$to/fish/vendor_completions.d/sol.fish"
touch "$to/made"
