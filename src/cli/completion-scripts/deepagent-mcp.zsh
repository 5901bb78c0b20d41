#compdef deepagent-mcp
# deepagent-mcp: completion for zsh. In ~/.zshrc, after compinit: source <(deepagent-mcp completions zsh)
_deepagent-mcp() {
  local line
  local -a found
  while IFS= read -r line; do
    case $line in
      :files) _files ;;
      :folders) _files -/ ;;
      *$'\t'*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      *) found+=("${line//:/\\:}") ;;
    esac
  done < <("${words[1]}" completions words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null </dev/null)
  if (( ${#found} )); then _describe value found; fi
}
if [[ ${funcstack[1]} == _deepagent-mcp ]]; then _deepagent-mcp "$@"; else compdef _deepagent-mcp deepagent-mcp; fi
