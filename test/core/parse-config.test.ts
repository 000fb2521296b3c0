import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { mistakeLine } from '../../src/core/config-errors.js';
import { defaultHookBox } from '../../src/core/hook-box.js';
import { defaultMetadataLimits, defaultTransportLimits } from '../../src/core/limits.js';
import { type ParsedConfig, parseConfig } from '../../src/core/parse-config.js';

const drivers = [
  {
    name: 'kresd',
    properties: { kresd: { type: 'string' }, command: { type: 'string' }, expect: { type: 'string' } },
    required: ['command', 'expect'],
  },
  { name: 'native', properties: { native: { type: 'string' } }, required: [] },
  {
    name: 'signal',
    properties: { signal: { enum: ['HUP'] }, pidFile: { type: 'string' } },
    required: ['pidFile'],
  },
  {
    name: 'supervisord',
    properties: { supervisord: { type: 'string' }, signal: { enum: ['HUP'] } },
    required: [],
  },
];

function parse(text: string): ParsedConfig {
  return parseConfig(text, {
    drivers,
    validateCron: (expression) => (expression.split(' ').length === 5 ? undefined : 'it has not five fields'),
    defaults: { root: '/etc/writ/root.json', state: '/var/lib/writ', run: '/run/writ', hostId: 'host-1' },
  });
}

function mistakes(text: string): string[] {
  const parsed = parse(text);
  return parsed.ok ? [] : parsed.mistakes.map(mistakeLine);
}

const minimal = `repository: https://policy.example.net/
bundles:
  - name: dns-edge
`;

const whole = `
repository: { url: https://policy.example.net/, ca: /etc/writ/ca.pem, redirects: [cdn.example.net] }
root: /srv/root.json
state: /srv/writ
policy: /srv/policy
run: /run/w
socket: /run/w/a.sock
host: { id: edge-fra1-03, labels: { site: fra1 } }
poll: { cron: "*/5 * * * *", timeZone: Europe/Berlin }
bundles:
  - name: dns-edge
    channel: canary
    mode: "0640"
    group: knot-resolver
    checks:
      - { name: zones parse, run: [kresd, -n, "{scratch}"], timeout: 7s }
      - { name: views, parse: ["*.yaml"], schema: "bundle:views.schema.json", memory: 64MB }
  - name: access
together: [[dns-edge, access]]
workers:
  - name: resolver
    uses: [dns-edge]
    when: ["block.rpz", "views/**"]
    load: { run: [/usr/bin/load, "{bundle}"] }
    reset: { kresd: "/run/k/*", command: "policy_reset()", expect: "0", timeout: 2s, min: 1 }
    confirm: required
    settle: 30s
    minInterval: 10m
    probe: { run: [dig, app.example.com], retry: 3 }
  - name: portal
    uses: [dns-edge, access]
    when: ["access:*.yaml"]
    reset: { native: portal }
keep: { generations: 5, grace: 1m }
refusals: { retry: 2h }
maxStale: 3d
onStale: { run: [systemctl, stop, portal] }
onFresh: { run: [systemctl, start, portal], timeout: 1m }
untrusted: rollback
limits: { archive: 2GB, entries: 7, depth: 8, ratio: 9, file: 10MB, tree: 11kB }
`;

describe('a configuration', () => {
  it('of three lines has every other value by default', () => {
    const parsed = parse(minimal);
    assert.ok(parsed.ok);
    const { limits, metadataLimits, transport, ...config } = parsed.config;
    assert.deepEqual([metadataLimits, transport], [defaultMetadataLimits, defaultTransportLimits]);
    assert.deepEqual(config, {
      repository: [{ url: 'https://policy.example.net/', redirects: [] }],
      root: '/etc/writ/root.json',
      state: '/var/lib/writ',
      policy: '/var/lib/writ/policy',
      run: '/run/writ',
      socket: '/run/writ/agent.sock',
      host: { id: 'host-1', labels: {} },
      poll: { kind: 'every', everyMs: 300_000 },
      bundles: [{ name: 'dns-edge', channel: 'stable', checks: [], mode: 0o644 }],
      together: [],
      workers: [],
      keep: { generations: 3, graceMs: 600_000 },
      refusals: { retryMs: 3_600_000 },
      scrub: { everyMs: 3_600_000, repair: 'yes', bytesPerSecond: 20e6 },
      freshness: { staleAfterMs: 900_000 },
      untrusted: 'keep',
      sandbox: 'auto',
    });
    assert.equal(limits.maxArchiveBytes, 1_000_000_000);
    assert.equal(limits.maxEntries, 100_000);
    assert.deepEqual(parsed.given, ['/repository', '/bundles']);
  });

  it('with every key is read with its units', () => {
    const parsed = parse(whole);
    assert.ok(parsed.ok, JSON.stringify(parsed));
    const { config } = parsed;
    assert.deepEqual(config.repository, [
      { url: 'https://policy.example.net/', ca: '/etc/writ/ca.pem', redirects: ['cdn.example.net'] },
    ]);
    assert.deepEqual(config.poll, { kind: 'cron', expression: '*/5 * * * *', timeZone: 'Europe/Berlin' });
    assert.deepEqual(config.host, { id: 'edge-fra1-03', labels: { site: 'fra1' } });
    assert.deepEqual(config.bundles[0], {
      name: 'dns-edge',
      channel: 'canary',
      mode: 0o640,
      group: 'knot-resolver',
      checks: [
        {
          kind: 'run',
          name: 'zones parse',
          run: ['kresd', '-n', '{scratch}'],
          timeoutMs: 7000,
          box: defaultHookBox,
        },
        {
          kind: 'parse',
          name: 'views',
          files: ['*.yaml'],
          schema: 'bundle:views.schema.json',
          timeoutMs: 10_000,
          maxMemoryBytes: 64_000_000,
        },
      ],
    });
    assert.deepEqual(config.workers[0], {
      name: 'resolver',
      uses: ['dns-edge'],
      when: ['block.rpz', 'views/**'],
      load: { run: ['/usr/bin/load', '{bundle}'], timeoutMs: 30_000, box: defaultHookBox },
      reset: {
        driver: 'kresd',
        options: { kresd: '/run/k/*', command: 'policy_reset()', expect: '0', timeout: '2s', min: 1 },
        timeoutMs: 2000,
        min: 1,
      },
      confirm: 'required',
      settleMs: 30_000,
      minIntervalMs: 600_000,
      probe: { run: ['dig', 'app.example.com'], timeoutMs: 10_000, box: defaultHookBox, retry: 3 },
    });
    assert.deepEqual(config.workers[1]?.reset, {
      driver: 'native',
      options: { native: 'portal' },
      timeoutMs: 5000,
      min: 0,
    });
    assert.deepEqual(config.together, [['dns-edge', 'access']]);
    assert.deepEqual(config.keep, { generations: 5, graceMs: 60_000 });
    assert.equal(config.refusals.retryMs, 7_200_000);
    assert.deepEqual(config.freshness, {
      staleAfterMs: 86_400_000,
      maxStaleMs: 259_200_000,
      onStale: { run: ['systemctl', 'stop', 'portal'], timeoutMs: 30_000 },
      onFresh: { run: ['systemctl', 'start', 'portal'], timeoutMs: 60_000 },
    });
    assert.equal(config.untrusted, 'rollback');
    assert.deepEqual(
      [config.limits.maxArchiveBytes, config.limits.maxFileBytes, config.limits.maxTreeBytes],
      [2_000_000_000, 10_000_000, 11_000],
    );
    assert.deepEqual([config.limits.maxEntries, config.limits.maxDepth, config.limits.maxRatio], [7, 8, 9]);
    assert.ok(parsed.given.includes('/limits/archive'));
  });

  it('may have a list of mirrors of any kind, each with an authority and redirects of its own', () => {
    const mirrors =
      '["file:///media/usb", {url: http://a/}, {url: https://b/, ca: /ca.pem, redirects: ["c:8"]}]';
    const parsed = parse(minimal.replace('https://policy.example.net/', mirrors));
    assert.ok(parsed.ok, JSON.stringify(parsed));
    assert.deepEqual(parsed.config.repository, [
      { url: 'file:///media/usb', redirects: [] },
      { url: 'http://a/', redirects: [] },
      { url: 'https://b/', ca: '/ca.pem', redirects: ['c:8'] },
    ]);
  });

  it('turns the scrub off, or slows it down', () => {
    const parsed = parse(`${minimal}scrub: { every: off, repair: false, rate: 500kB }\n`);
    assert.ok(parsed.ok);
    assert.deepEqual(parsed.config.scrub, { repair: 'no', bytesPerSecond: 500_000 });
  });

  it('may bound metadata and the way to the server', () => {
    const metadata = '{root: 20kB, timestamp: 1kB, snapshot: 3MB, targets: 16MB, rotations: 7}';
    const timeouts = '{connect: 1s, idle: 2s, metadata: 3s, refresh: 4s, archive: 5s}';
    const parsed = parse(`${minimal}limits: {metadata: ${metadata}, timeouts: ${timeouts}}\n`);
    assert.ok(parsed.ok, JSON.stringify(parsed));
    assert.deepEqual(parsed.config.metadataLimits, {
      ...defaultMetadataLimits,
      maxRootBytes: 20_000,
      maxTimestampBytes: 1000,
      maxSnapshotBytes: 3_000_000,
      maxTargetsBytes: 16_000_000,
      maxRootRotations: 7,
    });
    assert.deepEqual(parsed.config.transport, {
      ...defaultTransportLimits,
      connectTimeoutMs: 1000,
      idleTimeoutMs: 2000,
      metadataTimeoutMs: 3000,
      refreshTimeoutMs: 4000,
      archiveTimeoutMs: 5000,
    });
  });

  it('warns of a bundle that workers use and nothing checks', () => {
    const parsed = parse(whole);
    assert.ok(parsed.ok);
    assert.deepEqual(
      parsed.warnings.map(({ pointer }) => pointer),
      ['/bundles/1'],
    );
  });
});

describe('mistakes of a configuration', () => {
  it('are all told at once, in the order of the file, with line, column and pointer', () => {
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

  it('are at most 100', () => {
    const keys = Array.from({ length: 500 }, (_, n) => `key${n}: 1\n`).join('');
    assert.equal(mistakes(minimal + keys).length, 100);
  });

  const worker = (lines: string): string => `${minimal}  - name: access\nworkers:\n  - name: w\n${lines}`;
  const mirrors = (value: string): string => minimal.replace('https://policy.example.net/', value);
  const cases: readonly (readonly [what: string, text: string, expected: readonly RegExp[]])[] = [
    ['an empty file', '', [/1:1 must be a group of keys.*it is empty/]],
    ['a list', '- a', [/must be a group of keys/]],
    ['no repository', 'bundles: [{name: a}]', [/the key "repository" is missing/]],
    ['no bundles', `repository: https://a/\nbundles: []`, [/2:10 \/bundles: must be a list of 1/]],
    [
      'a key whose feature is not there yet',
      `${minimal}rollout: { percent: 5 }`,
      [/4:1 \/rollout: unknown key "rollout"/],
    ],
    [
      'a scrub too often',
      `${minimal}scrub: { every: 1s }`,
      [/scrub\/every: must be from 10 to 2592000 seconds/],
    ],
    [
      'a scrub at no time',
      `${minimal}scrub: { every: never }`,
      [/scrub\/every: must be a duration, as 1h, or off/],
    ],
    ['a scrub that stands still', `${minimal}scrub: { rate: 1kB }`, [/scrub\/rate: must be from 100 kB/]],
    ['a repair of a word', `${minimal}scrub: { repair: "yes" }`, [/scrub\/repair: must be true or false/]],
    ['a sandbox of a bundle', `${minimal}    sandbox: {}`, [/unknown key "sandbox"/]],
    ['a URL that is none', minimal.replace('https://policy', 'policy'), [/must be a URL/]],
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
      'an authority for a directory',
      mirrors('[{url: file:///a, ca: /b}]'),
      [/0\/ca: is only used with https/],
    ],
    [
      'redirects of a directory',
      mirrors('{url: file:///a, redirects: [b]}'),
      [/redirects: is only used with http/],
    ],
    [
      'a URL for a host',
      mirrors('{url: https://a/, redirects: ["https://b/"]}'),
      [/a host in small letters/],
    ],
    [
      'a timestamp of nothing',
      `${minimal}limits: {metadata: {timestamp: 9B}}`,
      [/from 1 kB to 16 MB; it is 9B/],
    ],
    ['targets that cannot be kept', `${minimal}limits: {metadata: {targets: 17MB}}`, [/from 1 kB to 16 MB/]],
    ['roots without end', `${minimal}limits: {metadata: {rotations: 1025}}`, [/from 1 to 1024/]],
    ['no patience', `${minimal}limits: {timeouts: {idle: 1ms}}`, [/from 0.1 to 600 seconds/]],
    ['patience without end', `${minimal}limits: {timeouts: {refresh: 2h}}`, [/from 1 to 3600 seconds/]],
    ['a relative state', `${minimal}state: var/writ`, [/4:8 \/state: must be an absolute path/]],
    ['policy in private state', `${minimal}policy: /var/lib/writ/staging`, [/\/policy: must be/]],
    ['policy around state', `${minimal}policy: /var//lib/`, [/\/policy: must be/]],
    ['policy as state', `${minimal}policy: /var/lib/writ`, [/\/policy: must be/]],
    ['every and cron', `${minimal}poll: { every: 5m, cron: "* * * * *" }`, [/only one can hold/]],
    ['neither', `${minimal}poll: {}`, [/needs `every` or `cron`/]],
    ['a zone without cron', `${minimal}poll: { every: 5m, timeZone: UTC }`, [/only used with `cron`/]],
    ['a cron that is none', `${minimal}poll: { cron: "* *" }`, [/is no schedule: it has not five fields/]],
    ['polling all the time', `${minimal}poll: { every: 999ms }`, [/from 1 to 2592000 seconds; it is 999ms/]],
    ['a number for a duration', `${minimal}poll: { every: 300 }`, [/a duration.*it is 300/]],
    ['an unquoted mode', `${minimal}    mode: 0644`, [/in quotes.*it is 644/]],
    ['a mode that others may write', `${minimal}    mode: "0664"`, [/a file mode/]],
    ['a group with a slash', `${minimal}    group: a/b`, [/the name or number of a group/]],
    [
      'a check of both kinds',
      `${minimal}    checks: [{name: a, run: [b], parse: [c]}]`,
      [/either `run` or `parse`/],
    ],
    ['a check of no kind', `${minimal}    checks: [{name: a}]`, [/either `run` or `parse`/]],
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
      'too long a timeout',
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
      'a worker that uses what is not there',
      worker('    uses: [acess]\n    load: {run: [a]}'),
      [/"acess"; did you mean "access"/],
    ],
    ['a bundle used twice', worker('    uses: [access, access]\n    load: {run: [a]}'), [/is named twice/]],
    ['a worker that is never told', worker('    uses: [access]'), [/needs `load`, `reset` or `probe`/]],
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
      'a key of the driver that another key of it would name',
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
      'a value of no driver',
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
      [/unknown value "yes"; known: required, optional/],
    ],
    ['a label that is no name', `${minimal}host: { labels: { "A B": c } }`, [/must be a name/]],
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

describe('a file of any shape', () => {
  const words = [
    'repository',
    'bundles',
    'workers',
    'name',
    'uses',
    'when',
    'checks',
    'run',
    'reset',
    'signal',
    'poll',
  ];
  const shaped = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(null, 'dns-edge', 'a:b', '{bundle}', '5m', -1, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...words), tie('value'), { maxKeys: 5 }),
    ),
  })).value;

  it('is accepted or has mistakes with their lines; it never throws', () => {
    fc.assert(
      fc.property(fc.oneof(shaped, fc.jsonValue()), (data) => {
        const parsed = parse(JSON.stringify(data, undefined, 1));
        if (parsed.ok) return;
        assert.ok(parsed.mistakes.length > 0);
        for (const { line, column, pointer } of parsed.mistakes) {
          assert.ok(line >= 1 && column >= 1 && (pointer === '' || pointer.startsWith('/')));
        }
      }),
      { numRuns: 150 },
    );
  });
});

describe('text that is no configuration', () => {
  for (const [what, text, line] of [
    ['broken YAML', 'repository: [a\nbundles: }', 2],
    ['a key twice', `${minimal}repository: https://b/`, 4],
    ['two documents', `${minimal}---\na: 1`, 4],
    ['a tag', `${minimal}root: !path /a`, 4],
    ['a tab as indentation', 'bundles:\n\t- name: a', 2],
    ['nesting beyond the stack', '['.repeat(100_000), 1],
    ['more than 1 MB', `# ${'x'.repeat(1_000_000)}`, 1],
    [
      'a bomb of aliases',
      `a: &a [x]\nb: &b [${'*a,'.repeat(30)}]\nc: &c [${'*b,'.repeat(30)}]\nd: [${'*c,'.repeat(30)}]`,
      1,
    ],
    ['an unknown alias', 'a: *b', 1],
  ] as const) {
    it(`is refused with its line: ${what}`, () => {
      const parsed = parse(text);
      assert.ok(!parsed.ok);
      assert.deepEqual(
        parsed.mistakes.slice(0, 1).map(({ code, line: at }) => ({ code, line: at })),
        [{ code: 'CONFIG_SYNTAX', line }],
      );
    });
  }

  it('cannot reach prototypes', () => {
    assert.deepEqual(mistakes(`${minimal}__proto__: { polluted: 1 }`), [
      '4:1 /__proto__: unknown key "__proto__"',
    ]);
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });

  it('names the line that an alias stands for', () => {
    const found = mistakes(`repository: https://a/\nbundles:\n  - &b { name: A }\n  - *b`);
    assert.match(found[0] ?? '', /^3:16 \/bundles\/0\/name/);
    assert.equal(found.length, 3);
  });
});
