# deepagent-mcp: completion for bash. In ~/.bashrc: source <(deepagent-mcp completions bash)
_deepagent_mcp() {
  local current=${COMP_WORDS[COMP_CWORD]} word line
  local -a words=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $word != "=" ]]; then words+=("$word"); fi
  done
  if [[ $current == "=" ]]; then
    current=""
    words+=("")
  fi
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files | :folders)
        compopt -o filenames 2>/dev/null
        local kind=-f
        if [[ $line == :folders ]]; then kind=-d; fi
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen "$kind" -- "$current")
        ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" completions words -- "${words[@]}" 2>/dev/null </dev/null)
}
complete -F _deepagent_mcp deepagent-mcp
