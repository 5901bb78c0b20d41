# deepagent-mcp: completion for fish. deepagent-mcp completions fish > ~/.config/fish/completions/deepagent-mcp.fish
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
