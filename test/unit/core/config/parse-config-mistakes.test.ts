// Mistakes of a configuration: each with its position and a text that helps to correct it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { minimal, mistakes, parse } from './parsed-text.js';

describe('mistakes of a configuration', () => {
  it('are all reported at once, in the order of the file, with line, column and pointer', () => {
    const found = mistakes(`repository: https://policy.example.net/
pol: { every: 5m }
bundles:
  - name: DNS
    chanel: stable
  - name: access
  - name: access
keep:
  generations: many
`);
    assert.deepEqual(found, [
      '2:1 /pol: unknown key "pol"; did you mean "poll"?',
      '4:11 /bundles/0/name: must be a name: up to 64 of a-z 0-9 . _ - that begins with a letter or digit; it is "DNS"',
      '5:5 /bundles/0/chanel: unknown key "chanel"; did you mean "channel"?',
      '7:11 /bundles/2/name: "access" is the name of an earlier one',
      '9:16 /keep/generations: must be a whole number from 2 to 1000; it is "many"',
    ]);
  });

  it('include those inside a mistyped key, with the path in the file', () => {
    const found = mistakes(`repositry: https://policy.example.net/
bundels:
  - nam: dns
wrokers:
  - name: w
    uses: [dns, web]
    rest: { kresd: "/run/*", comand: "reset()" }
`);
    assert.deepEqual(found, [
      '1:1 /repositry: unknown key "repositry"; did you mean "repository"?',
      '2:1 /bundels: unknown key "bundels"; did you mean "bundles"?',
      '3:5 /bundels/0/nam: unknown key "nam"; did you mean "name"?',
      '4:1 /wrokers: unknown key "wrokers"; did you mean "workers"?',
      '6:17 /wrokers/0/uses/1: unknown bundle "web"; known: dns',
      '7:5 /wrokers/0/rest: unknown key "rest"; did you mean "reset"?',
      '7:5 /wrokers/0/rest: the key "expect" is missing',
      '7:30 /wrokers/0/rest/comand: unknown key "comand"; did you mean "command"?',
    ]);
  });

  it('are reported separately for each alias, and a mistyped key does not replace a correct one', () => {
    const twice = `${minimal}poll: &a { evry: 5m }\nscrub: *a\nbundels: [{ name: UPPER }]\n`;
    assert.deepEqual(mistakes(twice), [
      '4:12 /poll/evry: unknown key "evry"; did you mean "every"?',
      '4:12 /scrub/evry: unknown key "evry"; did you mean "every"?',
      '6:1 /bundels: unknown key "bundels"; did you mean "bundles"?',
    ]);
  });

  it('are at most 100', () => {
    const keys = Array.from({ length: 500 }, (_, n) => `key${n}: 1\n`).join('');
    assert.equal(mistakes(minimal + keys).length, 100);
  });

  const worker = (lines: string): string => `${minimal}  - name: access\nworkers:\n  - name: w\n${lines}`;
  const mirrors = (value: string): string => minimal.replace('https://policy.example.net/', value);
  const cases: readonly (readonly [what: string, text: string, expected: readonly RegExp[]])[] = [
    ['an empty file', '', [/^1:1 there is nothing in it but comments: .*`repository` and `bundles`$/]],
    ['a file with only comments', '# repository: https://a/\n', [/^1:1 there is nothing in it/]],
    ['a text in place of the keys', 'repository', [/1:1 must be a group of keys.*it is "repository"/]],
    ['a list', '- a', [/must be a group of keys/]],
    ['no repository', 'bundles: [{name: a}]', [/the key "repository" is missing/]],
    ['no bundles', `repository: https://a/\nbundles: []`, [/2:10 \/bundles: must be a list of 1/]],
    [
      'a key without a feature',
      `${minimal}rollout: { percent: 5 }`,
      [/4:1 \/rollout: unknown key "rollout"/],
    ],
    [
      'a scrub interval below 10 s',
      `${minimal}scrub: { every: 1s }`,
      [/scrub\/every: must be from 10 to 2592000 seconds/],
    ],
    [
      'a scrub interval that is no duration',
      `${minimal}scrub: { every: never }`,
      [/scrub\/every: must be a duration, as 1h, or off/],
    ],
    ['a scrub rate below 100 kB', `${minimal}scrub: { rate: 1kB }`, [/scrub\/rate: must be from 100 kB/]],
    [
      'a repair that is no boolean',
      `${minimal}scrub: { repair: "yes" }`,
      [/scrub\/repair: must be true or false/],
    ],
    ['a sandbox of a bundle', `${minimal}    sandbox: {}`, [/unknown key "sandbox"/]],
    ['an invalid URL', minimal.replace('https://policy', 'policy'), [/must be a URL/]],
    ['ftp', minimal.replace('https', 'ftp'), [/must begin with https/]],
    ['a password in the URL', minimal.replace('//', '//a:b@'), [/name or password/]],
    ['a file URL with a host', minimal.replace('https', 'file'), [/three slashes/]],
    ['no mirror', mirrors('[]'), [/a list of 1 to 16/]],
    [
      'a mirror that is named twice',
      mirrors('[https://a/x, https://b/, {url: https://a/x/}]'),
      [/repository\/2: is named twice/],
    ],
    ['a mirror of another kind', mirrors('[https://a/, ftp://b/]'), [/repository\/1: must begin with https/]],
    ['a password in a mirror', mirrors('[{url: "https://a:b@c/"}]'), [/repository\/0\/url: must not carry/]],
    ['a mirror without URL', mirrors('[{ca: /a}]'), [/the key "url" is missing/]],
    [
      'an authority for a file URL',
      mirrors('[{url: file:///a, ca: /b}]'),
      [/0\/ca: is only used with https/],
    ],
    [
      'redirects of a file URL',
      mirrors('{url: file:///a, redirects: [b]}'),
      [/redirects: is only used with http/],
    ],
    [
      'a URL for a host',
      mirrors('{url: https://a/, redirects: ["https://b/"]}'),
      [/a host in small letters/],
    ],
    [
      'a limit for the timestamp below 1 kB',
      `${minimal}limits: {metadata: {timestamp: 9B}}`,
      [/from 1 kB to 16 MB; it is 9B/],
    ],
    [
      'a limit for targets above 16 MB',
      `${minimal}limits: {metadata: {targets: 17MB}}`,
      [/from 1 kB to 16 MB/],
    ],
    ['more than 1024 root rotations', `${minimal}limits: {metadata: {rotations: 1025}}`, [/from 1 to 1024/]],
    ['a timeout below its bound', `${minimal}limits: {timeouts: {idle: 1ms}}`, [/from 0.1 to 600 seconds/]],
    ['a timeout above its bound', `${minimal}limits: {timeouts: {refresh: 2h}}`, [/from 1 to 3600 seconds/]],
    ['a relative state', `${minimal}state: var/writ`, [/4:8 \/state: must be an absolute path/]],
    ['policy in private state', `${minimal}policy: /var/lib/writ/staging`, [/\/policy: must be/]],
    ['policy around state', `${minimal}policy: /var//lib/`, [/\/policy: must be/]],
    ['policy as state', `${minimal}policy: /var/lib/writ`, [/\/policy: must be/]],
    ['every and cron', `${minimal}poll: { every: 5m, cron: "* * * * *" }`, [/give one of them/]],
    ['a poll without every and cron', `${minimal}poll: {}`, [/needs `every` or `cron`/]],
    ['a zone without cron', `${minimal}poll: { every: 5m, timeZone: UTC }`, [/only used with `cron`/]],
    [
      'an invalid cron expression',
      `${minimal}poll: { cron: "* *" }`,
      [/is not a schedule: it has not five fields/],
    ],
    [
      'a poll interval below 1 s',
      `${minimal}poll: { every: 999ms }`,
      [/from 1 to 2592000 seconds; it is 999ms/],
    ],
    ['a number for a duration', `${minimal}poll: { every: 300 }`, [/a duration.*it is 300/]],
    ['an unquoted mode', `${minimal}    mode: 0644`, [/in quotes.*it is 644/]],
    ['a mode that others may write', `${minimal}    mode: "0664"`, [/a file mode/]],
    ['a group with a slash', `${minimal}    group: a/b`, [/the name or number of a group/]],
    [
      'a check of both kinds',
      `${minimal}    checks: [{name: a, run: [b], parse: [c]}]`,
      [/either `run`, `parse` or `change`/],
    ],
    [
      'a check of a command and of the change',
      `${minimal}    checks: [{name: a, run: [b], change: {removed: 50%}}]`,
      [/either `run`, `parse` or `change`/],
    ],
    ['a check of no kind', `${minimal}    checks: [{name: a}]`, [/either `run`, `parse` or `change`/]],
    [
      'a check of the change without a bound',
      `${minimal}    checks: [{name: a, change: {}}]`,
      [/checks\/0\/change: must be a group of keys, as \{removed: 50%/],
    ],
    [
      'more than all files removed',
      `${minimal}    checks: [{name: a, change: {removed: 101%}}]`,
      [/change\/removed: must be from 0% to 100%; it is 101%/],
    ],
    [
      'a share without its sign',
      `${minimal}    checks: [{name: a, change: {removed: 50}}]`,
      [/change\/removed: must be a percentage/],
    ],
    [
      'a range with one end',
      `${minimal}    checks: [{name: a, change: {bytes: 50%..}}]`,
      [/change\/bytes: must be two percentages/],
    ],
    [
      'a range without 100%',
      `${minimal}    checks: [{name: a, change: {bytes: 150%..200%}}]`,
      [/change\/bytes: must contain 100%/],
    ],
    [
      'a range in the wrong order',
      `${minimal}    checks: [{name: a, change: {bytes: 200%..50%}}]`,
      [/change\/bytes: must contain 100%/],
    ],
    [
      'a timeout of a change check',
      `${minimal}    checks: [{name: a, change: {removed: 1%}, timeout: 5s, user: nobody}]`,
      [/checks\/0\/timeout: is not used with `change`/, /checks\/0\/user: is not used with `change`/],
    ],
    [
      'a schema for a command',
      `${minimal}    checks: [{name: a, run: [b], schema: /c}]`,
      [/only used with `parse`/],
    ],
    ['an empty command', `${minimal}    checks: [{name: a, run: []}]`, [/a program and its arguments/]],
    [
      'a relative program',
      `${minimal}    checks: [{name: a, run: [./b]}]`,
      [/run\/0: must be a program by its name/],
    ],
    [
      'a number as an argument',
      `${minimal}    checks: [{name: a, run: [b, 5]}]`,
      [/put it in quotes.*it is 5/],
    ],
    [
      'a check timeout of more than an hour',
      `${minimal}    checks: [{name: a, run: [b], timeout: 2h}]`,
      [/from 0.001 to 3600/],
    ],
    ['a set of an unknown bundle', `${minimal}together: [[dns-edge, dns-egde]]`, [/did you mean "dns-edge"/]],
    [
      'sets that overlap',
      `${minimal}  - name: b\ntogether: [[dns-edge, b], [b, dns-edge]]`,
      [/in a set already/, /in a set/],
    ],
    [
      'a worker that uses an unknown bundle',
      worker('    uses: [acess]\n    load: {run: [a]}'),
      [/"acess"; did you mean "access"/],
    ],
    ['a bundle used twice', worker('    uses: [access, access]\n    load: {run: [a]}'), [/is named twice/]],
    [
      'a worker without `load`, `reset` and `probe`',
      worker('    uses: [access]'),
      [/needs `load`, `reset` or `probe`/],
    ],
    [
      '{bundle} of several',
      worker('    uses: [access, dns-edge]\n    load: {run: [a, "{bundle}/x"]}'),
      [/load\/run\/1: \{bundle\}/],
    ],
    [
      'a glob of no bundle',
      worker('    uses: [access, dns-edge]\n    when: ["*"]\n    load: {run: [a]}'),
      [/must begin with BUNDLE:/],
    ],
    [
      'a glob of another bundle',
      worker('    uses: [access]\n    when: ["dns-edge:*"]\n    load: {run: [a]}'),
      [/unknown bundle "dns-edge"/],
    ],
    [
      'no driver',
      worker('    uses: [access]\n    reset: {signl: HUP}'),
      [/exactly one of kresd, native, signal, supervisord; did you mean "signal"/],
    ],
    [
      'two drivers',
      worker('    uses: [access]\n    reset: {signal: HUP, native: a}'),
      [/it has native and signal/],
    ],
    [
      'an option of another driver when `signal` is an option itself',
      worker('    uses: [access]\n    reset: {supervisord: /s, signal: HUP, pidFile: /a}'),
      [/unknown key "pidFile"/],
    ],
    [
      "a driver's missing key",
      worker('    uses: [access]\n    reset: {signal: HUP}'),
      [/the key "pidFile" is missing/],
    ],
    [
      "another driver's key",
      worker('    uses: [access]\n    reset: {native: a, pidFile: /a}'),
      [/unknown key "pidFile"/],
    ],
    [
      "an unknown value of a driver's key",
      worker('    uses: [access]\n    reset: {signal: HUB, pidFile: /a}'),
      [/unknown value "HUB"; did you mean "HUP"/],
    ],
    [
      'one socket for two groups',
      worker('    uses: [access]\n    reset: {native: a}\n  - {name: v, uses: [access], reset: {native: a}}'),
      [/reset\/native: "a" is the socket of an earlier group/],
    ],
    [
      'confirm: yes',
      worker('    uses: [access]\n    confirm: yes\n    load: {run: [a]}'),
      [/unknown value "yes"; known: required, warn, accept$/],
    ],
    [
      'a label with an invalid name',
      `${minimal}host: { labels: { "A B": c } }`,
      [/must be a name of a label/],
    ],
    [
      'a label of 64 characters',
      `${minimal}host: { labels: { ${'a'.repeat(64)}: c } }`,
      [/must be a name of a/],
    ],
    ['a label with a line break', `${minimal}host: { labels: { a: "b\\nc" } }`, [/255 printable characters/]],
    [
      'a label with a bidirectional control character',
      `${minimal}host: { labels: { a: "\\u202eb" } }`,
      [/255 printable/],
    ],
    ['a label of 256 characters', `${minimal}host: { labels: { a: ${'x'.repeat(256)} } }`, [/255 printable/]],
    ['a label that is a number', `${minimal}host: { labels: { a: 7 } }`, [/255 printable/]],
    [
      'more than 64 labels',
      `${minimal}host: { labels: { ${Array.from({ length: 65 }, (_, index) => `l${index}: x`).join(', ')} } }`,
      [/64/],
    ],
  ];
  for (const [what, text, expected] of cases) {
    it(`include ${what}`, () => {
      const found = mistakes(text);
      assert.equal(found.length, expected.length, found.join('\n'));
      for (const [index, line] of found.entries()) assert.match(line, expected[index]!);
    });
  }

  for (const [what, text] of [
    ['socket', `${minimal}socket: /${'s'.repeat(107)}`],
    ['run', `${minimal}run: /${'r'.repeat(100)}`],
    [
      'workers/0/reset/native',
      `${worker('    uses: [access]\n    reset: {native: a}')}\nrun: /${'r'.repeat(92)}`,
    ],
  ] as const) {
    it(`include a socket path over 107 bytes at /${what}`, () => {
      const parsed = parse(text);
      assert.ok(!parsed.ok);
      assert.deepEqual(
        parsed.mistakes.map(({ code, pointer }) => ({ code, pointer })),
        [{ code: 'SOCKET_PATH_TOO_LONG', pointer: `/${what}` }],
      );
    });
  }
  it('do not include a socket path of exactly 107 bytes', () => {
    assert.deepEqual(mistakes(`${minimal}socket: /${'s'.repeat(106)}`), []);
  });
});
