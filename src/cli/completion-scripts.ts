/**
 * Shell scripts that complete the program's arguments. Each script passes the words typed so far to
 * `completions words` of the program being completed, and shows the candidates that it prints.
 */
export const COMPLETION_SCRIPTS: Readonly<Record<string, string>> = {
  // `=` is a word of its own in bash. Bash 3.2 of macOS has neither mapfile nor compopt.
  bash: `# deepagent-mcp: completion for bash. In ~/.bashrc: source <(deepagent-mcp completions bash)
_deepagent_mcp() {
  local current=\${COMP_WORDS[COMP_CWORD]} word line
  local -a words=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
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
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("\${COMP_WORDS[0]}" completions words -- "\${words[@]}" 2>/dev/null </dev/null)
}
complete -F _deepagent_mcp deepagent-mcp
`,
  zsh: `#compdef deepagent-mcp
# deepagent-mcp: completion for zsh. In ~/.zshrc, after compinit: source <(deepagent-mcp completions zsh)
_deepagent-mcp() {
  local line
  local -a found
  while IFS= read -r line; do
    case $line in
      :files) _files ;;
      :folders) _files -/ ;;
      *$'\\t'*) found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
      *) found+=("\${line//:/\\\\:}") ;;
    esac
  done < <("\${words[1]}" completions words -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null </dev/null)
  if (( \${#found} )); then _describe value found; fi
}
if [[ \${funcstack[1]} == _deepagent-mcp ]]; then _deepagent-mcp "$@"; else compdef _deepagent-mcp deepagent-mcp; fi
`,
  fish: `# deepagent-mcp: completion for fish. deepagent-mcp completions fish > ~/.config/fish/completions/deepagent-mcp.fish
function __deepagent_mcp
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] completions words -- $words[2..-1] "$current" 2>/dev/null </dev/null)
        switch $line
            case ':files'
                __fish_complete_path $current
            case ':folders'
                __fish_complete_directories $current
            case '*'
                echo $line
        end
    end
end
complete -c deepagent-mcp -f -a '(__deepagent_mcp)'
`,
  // Older ones leave out an argument without text.
  powershell: `# deepagent-mcp: completion for PowerShell. In $PROFILE:
#   deepagent-mcp completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName deepagent-mcp -ScriptBlock {
    param($word, $line, $cursor)
    $program = $line.CommandElements[0].ToString()
    $before = $line.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.ToString() }
    $current = if ($word) { $word } else { ' ' }
    & $program completions words '--' @before $current 2>$null | ForEach-Object {
        if ($_ -eq ':files' -or $_ -eq ':folders') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($word)
        }
        else {
            $value, $text = $_ -split "\`t", 2
            if (-not $text) { $text = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $text)
        }
    }
}
`,
};
