// Mirrors with the real program: a closed port, malicious servers, and a directory.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';
import type { HttpFixture } from '../../kit/net/http-fixture.js';
import { type Bend, serveDirectory } from '../../kit/net/serve-repository.js';
import { freePort } from '../../kit/programs/free-port.js';

interface Failing {
  readonly code: string;
  readonly facts: { readonly mirror: string };
}

function warningsOf(json: Readonly<Record<string, unknown>>): [code: string, mirror: string][] {
  return (json['warnings'] as readonly Failing[]).map(({ code, facts }) => [code, facts.mirror]);
}

function zoneOf({ paths }: InstalledHost): string {
  return readFileSync(join(paths.current, 'dns-edge', 'block.rpz'), 'utf8');
}

/** Changes a byte in the middle of every answer that the pattern names. */
const spoil =
  (pattern: RegExp): Bend =>
  (path, response, honest) => {
    if (!pattern.test(path)) return false;
    const bytes = honest();
    const at = Math.floor(bytes.length / 2);
    bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at);
    response.end(bytes);
    return true;
  };

describe('a host with mirrors', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  async function mirrored(
    host: InstalledHost,
    bend: Bend,
    act: (places: {
      readonly dead: string;
      readonly liar: HttpFixture;
      readonly usb: string;
    }) => Promise<void>,
  ): Promise<void> {
    await using liar = await serveDirectory(host.repository, bend);
    const dead = `http://127.0.0.1:${await freePort()}/`;
    const usb = pathToFileURL(`${host.repository}/`).href;
    host.configure({ repository: [dead, { url: liar.url }, usb], poll: { every: '1h' } });
    await act({ dead, liar, usb });
  }

  it('pulls from the first good one, and reports the failed ones with their errors', longCase, async () => {
    using host = copyHost(installed);
    await mirrored(host, spoil(/timestamp/), async ({ dead, liar, usb }) => {
      const pull = await host.writ('pull', '--json');
      const json = jsonOf(pull);
      assert.deepEqual([pull.exitCode, json['outcome'], zoneOf(host)], [0, 'activated', 'version 2\n']);
      const [down, lied] = warningsOf(json);
      assert.deepEqual(down, ['SERVER_UNREACHABLE', dead]);
      assert.ok(lied?.[0].startsWith('SIGNATURE_') || lied?.[0] === 'METADATA_MALFORMED', String(lied));
      assert.equal(lied?.[1], liar.url);
      const status = jsonOf(await host.writ('status', '--json'));
      const mirrors = status['mirrors'] as readonly { readonly url: string; readonly state: string }[];
      assert.deepEqual(
        mirrors.map(({ url, state }) => [url, state]),
        [
          [dead, 'failed'],
          [liar.url, 'failed'],
          [usb, 'used'],
        ],
      );
      const notified = await host.writ('status');
      assert.match(
        notified.stdout,
        /mirror {4}http:\/\/127\.0\.0\.1:\d+\/ {2}fails for .* \[SERVER_UNREACHABLE\]/,
      );
    });
  });

  it('downloads an archive from another mirror than the metadata', async () => {
    using host = copyHost(installed);
    await mirrored(host, spoil(/\.tar\.br$/), async ({ dead, liar }) => {
      const json = jsonOf(await host.writ('pull', '--json'));
      assert.deepEqual([json['outcome'], zoneOf(host)], ['activated', 'version 2\n']);
      assert.deepEqual(warningsOf(json), [
        ['SERVER_UNREACHABLE', dead],
        ['DOWNLOAD_DIGEST', liar.url],
      ]);
    });
  });

  it('keeps its policy and names all mirrors where none is good', async () => {
    using host = copyHost(installed);
    await mirrored(host, spoil(/timestamp/), async ({ dead, liar }) => {
      host.configure({ repository: [dead, liar.url] });
      const pull = await host.writ('pull');
      assert.equal(pull.exitCode, 1);
      assert.equal(zoneOf(host), 'version 1\n');
      const notified = `${pull.stdout}${pull.stderr}`;
      assert.ok(notified.includes(dead) && notified.includes(liar.url), notified);
    });
  });

  it('with an agent uses the next mirror when the one in use ends', longCase, async () => {
    using host = copyHost(installed);
    await mirrored(
      host,
      () => false,
      async ({ dead, liar, usb }) => {
        await using agent = startWrit(['agent', '--config', host.config]);
        await agent.waitForStderr(/"state":"run"/);
        // The first cycle waits for its phase: the last pull is not long ago.
        assert.equal(jsonOf(await host.writ('pull', '--json'))['outcome'], 'activated');
        await liar[Symbol.asyncDispose]();
        const json = jsonOf(await host.writ('pull', '--json'));
        assert.deepEqual([json['outcome'], zoneOf(host)], ['unchanged', 'version 2\n']);
        // The failed one is not asked before the one that worked.
        assert.deepEqual(warningsOf(json), [['SERVER_UNREACHABLE', liar.url]]);
        const status = jsonOf(await host.writ('status', '--json'));
        const mirrors = status['mirrors'] as readonly { readonly url: string; readonly state: string }[];
        assert.deepEqual(
          mirrors.map(({ url, state }) => [url, state]),
          [
            [dead, 'failed'],
            [liar.url, 'failed'],
            [usb, 'used'],
          ],
        );
        agent.child.kill('SIGTERM');
        assert.equal((await agent.ended).exitCode, 0);
        await until(() => agent.child.exitCode !== null);
      },
    );
  });

  it('shows them in `config show`', async () => {
    using host = copyHost(installed);
    host.configure({
      repository: [
        { url: 'https://a/', ca: '/etc/writ/ca.pem', redirects: ['cdn:8443'] },
        'file:///media/usb/',
      ],
    });
    const { stdout, exitCode } = await host.writ('config', 'show');
    assert.equal(exitCode, 0);
    assert.match(
      stdout,
      /repository\s+https:\/\/a\/, authority \/etc\/writ\/ca\.pem, may redirect to cdn:8443\s+file/,
    );
    assert.match(stdout, /repository\s+file:\/\/\/media\/usb\/\s+file/);
    assert.match(stdout, /limits\.timeouts\.refresh\s+5 min\s+default/);
  });
});
