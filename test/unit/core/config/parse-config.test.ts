// The value of each key of a configuration, and the defaults of absent keys.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultHookSandbox } from '../../../../src/core/config/hook-sandbox.js';
import { defaultMetadataLimits, defaultTransportLimits } from '../../../../src/core/limits.js';
import { minimal, parse } from './parsed-text.js';

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
    bake: { for: 30m, restarts: 4 }
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
  it('with three lines has defaults for all other keys', () => {
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
      bundles: [
        {
          name: 'dns-edge',
          channel: 'stable',
          checks: [],
          mode: 0o644,
          bake: { forMs: 600_000, restarts: 2 },
        },
      ],
      together: [],
      workers: [],
      keep: { generations: 3, graceMs: 600_000 },
      refusals: { retryMs: 3_600_000 },
      scrub: { everyMs: 3_600_000, repair: 'yes', bytesPerSecond: 20e6 },
      freshness: { staleAfterMs: 900_000, release: { staleAfterMs: 900_000 } },
      untrusted: 'keep',
      sandbox: 'auto',
    });
    assert.equal(limits.maxArchiveBytes, 1_000_000_000);
    assert.equal(limits.maxEntries, 100_000);
    assert.deepEqual(parsed.given, ['/repository', '/bundles']);
  });

  it('with every key has values in their units', () => {
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
      bake: { forMs: 1_800_000, restarts: 4 },
      checks: [
        {
          kind: 'run',
          name: 'zones parse',
          run: ['kresd', '-n', '{scratch}'],
          timeoutMs: 7000,
          box: defaultHookSandbox,
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
      load: { run: ['/usr/bin/load', '{bundle}'], timeoutMs: 30_000, box: defaultHookSandbox },
      reset: {
        driver: 'kresd',
        options: { kresd: '/run/k/*', command: 'policy_reset()', expect: '0', timeout: '2s', min: 1 },
        timeoutMs: 2000,
        notNowForMs: 60_000,
        min: 1,
      },
      confirm: 'required',
      settleMs: 30_000,
      minIntervalMs: 600_000,
      probe: { run: ['dig', 'app.example.com'], timeoutMs: 10_000, box: defaultHookSandbox, retry: 3 },
    });
    assert.deepEqual(config.workers[1]?.reset, {
      driver: 'native',
      options: { native: 'portal' },
      timeoutMs: 5000,
      notNowForMs: 60_000,
      min: 1,
    });
    assert.deepEqual(config.together, [['dns-edge', 'access']]);
    assert.deepEqual(config.keep, { generations: 5, graceMs: 60_000 });
    assert.equal(config.refusals.retryMs, 7_200_000);
    assert.deepEqual(config.freshness, {
      staleAfterMs: 86_400_000,
      release: { staleAfterMs: 86_400_000 },
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

  it('may have a list of mirrors of any kind, each with its own authority and redirects', () => {
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

  it('switches the scrub off, or limits its rate', () => {
    const parsed = parse(`${minimal}scrub: { every: off, repair: false, rate: 500kB }\n`);
    assert.ok(parsed.ok);
    assert.deepEqual(parsed.config.scrub, { repair: 'no', bytesPerSecond: 500_000 });
  });

  it('may set limits for metadata and transport', () => {
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

  it('warns of a bundle with workers and without checks', () => {
    const parsed = parse(whole);
    assert.ok(parsed.ok);
    assert.deepEqual(
      parsed.warnings.map(({ pointer }) => pointer),
      ['/bundles/1'],
    );
  });
});
