# deepagent-mcp: completion for PowerShell. In $PROFILE:
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
            $value, $text = $_ -split "`t", 2
            if (-not $text) { $text = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $text)
        }
    }
}
