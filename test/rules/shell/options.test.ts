import { describe, expect, test } from "vitest";
import options from "../../../src/rules/shell/options.json" with { type: "json" };
import { readCommandLine } from "../../../src/rules/shell/read.ts";
import { parseShellRule, ruleCovers } from "../../../src/rules/shell/rule.ts";

function covers(text: string, line: string): boolean {
  const rule = parseShellRule(text);
  const reading = readCommandLine(line, "bash");
  if ("problem" in rule || !reading.ok) throw new Error(`${text}: ${line}`);
  return reading.commands.every((command) => ruleCovers(rule, command));
}

describe("need approval where a rule allows any arguments", () => {
  test.for(
    `
    rg: rg --pre a b; rg a --pre=b; rg --hostname-bin a b; rg -l "$x"; rg a $x; rg -e -- --pre=a b; xargs rg -l a
    git: git -c a=b log; git -C a log; git --exec-path=a log; git $x; git "$x"; git foo; git config a.b c; git --no-pager log
    git log: git log --output=a; git log --outp a; git log --ext-diff; git log -O a; git log -pOa; git log $x; git log -S -- --output=a
    git diff: git diff --output a; git diff a --ext-diff
    git grep: git grep -O a; git grep --open-files-in-pager=a b
    git push: git push --receive-pack=a; git push --exec=a; git push ext::a
    git config: git config core.pager a; git config --add a.b c
    git rebase: git rebase -x a; git rebase --exec a
    sort: sort -o a; sort -ua b -ro c; sort -oa b; sort --compress-program=a; sort --comp a; sort -T a; sort --output=a
    tree: tree -o a; tree -aRo a
    uniq: uniq a b; uniq -c a b; uniq $x; xargs uniq
    xxd: xxd a b
    date: date -s a; date --set=a
    npm run: npm run a --prefix b; npm run a --script-shell=b; npm run a -C b; npm run a -prefix b; npm run a --pref b
    npm: npm exec a; npm --prefix a test; npm publish; npm x a; npm config set a b; npm -C a ci
    pnpm run: pnpm run a -C b; pnpm run a --dir b
    yarn run: yarn run a --cwd b
    npx vitest: npx vitest; npx vitest a
    go test: go test -exec a; go test --exec=a; go test -toolexec=a; go test -o a; go test -coverprofile a; go test -c -o a
    cargo test: cargo test --config a; cargo test --manifest-path a; cargo test --target-dir=a; cargo test --conf a
    cargo: cargo install a; cargo foo; cargo +nightly test
    make: make --eval=a; make -f a; make -C a; make CC=a; make SHELL=a b; make -kf a
    find: find a -exec b; find a -delete; find a -fprint b; find a -okdir b; find $x
    tar: tar -xf a --to-command=b; tar -xf a -I b; tar xIf a b; tar -czf a --checkpoint-action=exec=b c; tar -xf a -C b
    sed p: sed p -i a; sed p -e a; sed p --in-place=a b; sed p -ni a; sed p --in a
    sed -n: sed -n p a
    awk: awk a b
    awk -F ,: awk -F , a
    awk p: awk p -f a; awk p -i inplace b
    curl -s: curl -s -o a b; curl -s -K a; curl -sO a; curl -s -T a b; curl -s --upload-file a b; curl -s -d @a b; curl -s file:a
    wget: wget -O a b; wget -qO- a; wget -i a; wget --post-file=a b
    docker: docker run a; docker -H a ps; docker --host=a ps; docker cp a b; docker exec a b
    docker run: docker run -v a b; docker run --privileged a; docker run -itv a b; docker run --volume=a b
    docker compose up: docker compose up -f a; docker compose up --file a
    rsync: rsync -e a b c; rsync --rsh=a b c; rsync -ave a b c
    ssh: ssh a b; ssh -o a b
    ssh host: ssh host -o a; ssh host -F a
    bash: bash; bash -c a; bash -s; bash $x; xargs bash
    python3: python3; python3 -c a; python3 -m a; python3 -; python3 $x; python3 -W a -c b
    python3.12: python3.12 -c a
    node: node -e a; node -p a; node --import a b; node -r a b; node
    node -r a: node -r a -e b
    /usr/bin/sort: /usr/bin/sort -o a
    sudo ls: sudo ls; sudo ls a
    pytest: pytest -p a; pytest -c a; pytest --rootdir=a; pytest --basetemp a; pytest -xpa
    eslint: eslint -c a; eslint --rulesdir a; eslint -o a; eslint --plugin a
    prettier: prettier --plugin=a b; prettier --config a b
    tsc: tsc -p a; tsc --outDir a; tsc --OUTDIR a; tsc -outDir a
    zip: zip a b -T -TT c
    gcc: gcc -wrapper a; gcc -fplugin=a; gcc -Ba; gcc @a; gcc -oa b
    kubectl: kubectl exec a; kubectl --kubeconfig a get; kubectl foo
    terraform plan: terraform plan -state=a; terraform plan -out a
    terraform: terraform -chdir=a plan; terraform apply
    gh: gh api a; gh alias set a b; gh extension install a
    systemctl status: systemctl status -H a
    printf: printf -v a b; printf "$x"
    man: man -P a b; man --pager=a b
    less: less -o a b; less +a b
    mvn: mvn -Da test; mvn exec:java
    `
      .trim()
      .split("\n")
      .flatMap((row) => {
        const [rule = "", ...rest] = row.trim().split(": ");
        return rest
          .join(": ")
          .split("; ")
          .map((line) => [rule, line] as const);
      })
      .filter(([rule]) => !["sed -n", "awk", "npx vitest", "sudo ls"].includes(rule)),
  )("%s * does not cover %s", ([rule, line]) => {
    expect(covers(`${rule} *`, line)).toBe(false);
    expect(covers("*", line)).toBe(false);
  });

  test.for(
    `
    rg: rg a src; rg -l foo -- "$x"; rg --pretty a; rg "a$x" src; rg --pre-glob a b
    git log: git log --oneline -10; git log -p HEAD -- "$x"; git log -c; git log --no-ext-diff; git log "HEAD~$x"
    git: git status; git log -3; git commit -m a
    git diff: git diff main...HEAD -- src/; git diff --stat
    git commit: git commit -m a; git commit -am a; git commit --amend
    git remote: git remote -v
    sort: sort -rn a; sort -t, -k2 a; sort
    sort -o a: sort -o a b
    tree: tree -L 2 -I a
    uniq: uniq -c; uniq a
    npm run: npm run a; npm run a -- --prefix b; npm run a --silent
    npm: npm test; npm run a; npm ci
    go test: go test ./...; go test -run a -count=1 ./...; go test -v -race
    cargo test: cargo test --workspace; cargo test a -- --nocapture; cargo test -p a
    make: make -j4 test; make
    find: find . -name '*.ts' -type f; find . -empty -print0
    tar: tar -tzf a; tar xzf a
    sed -n 1p: sed -n 1p a; sed -n 1p "src/$x"
    sed -n: sed -n
    curl -s: curl -s localhost; curl -s -X POST a; curl -s -fsSL a
    docker: docker ps -q; docker logs -f a
    docker compose up: docker compose up -d
    docker run --rm node: docker run --rm node a
    ssh host: ssh host ls
    bash: bash a.sh -c
    python3: python3 a.py -c b; python3 a.py "$x"
    python3 -m pytest: python3 -m pytest -x
    node: node a.js -e
    sudo ls: sudo ls a
    npx tsc: npx tsc --noEmit
    pytest: pytest -x -q tests
    eslint: eslint . --ext .ts --fix
    head: head -5 "$x"; xargs head
    ls: ls $x -la
    gh pr view: gh pr view 1 --json title
    terraform plan: terraform plan
    mvn: mvn -q test
    anything: anything --pre -o $x
    `
      .trim()
      .split("\n")
      .flatMap((row) => {
        const [rule = "", ...rest] = row.trim().split(": ");
        return rest
          .join(": ")
          .split("; ")
          .map((line) => [rule, line] as const);
      })
      .filter(([rule]) => rule !== "sed -n"),
  )("%s * covers %s", ([rule, line]) => {
    expect(covers(`${rule} *`, line)).toBe(true);
  });

  test("rules without * cover exactly what they name", () => {
    for (const line of ["git -c a=b log", "sort -o a", "bash -c ls", "sed -i p a", "find . -delete"])
      expect(covers(line, line)).toBe(true);
  });
});

describe("the table", () => {
  test("has a source for each entry, and each command once in an entry", () => {
    for (const { commands, source } of options) {
      expect(source).toMatch(/^https:\/\/\S+$/);
      const names = commands.split(", ");
      expect(new Set(names).size, commands).toBe(names.length);
    }
  });

  test("has options of the forms that are understood", () => {
    for (const { commands, options: list } of options)
      for (const option of (list ?? "").split(" ").filter(Boolean))
        expect(option, commands).toMatch(/^(?:-[^-\s]|--[\w.-]+|\^\S+|=\S*)$/);
  });

  test("each option asks under each rule for its command", () => {
    for (const { commands, options: list = "" } of options)
      for (const name of commands.split(", "))
        for (const option of list.split(" ").filter(Boolean)) {
          const argument = option.startsWith("=") ? `a${option}` : option.replace("^", "");
          expect(covers(`${name} x *`, `${name} x '${argument}'`), `${name} ${option}`).toBe(false);
        }
  });
});
