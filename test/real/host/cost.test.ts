// The cost of the agent on a host, measured on the real process: a cycle without a change is two requests and no write, and a
// large policy needs little memory. WRIT_TEST_FULL=1 uses the policy at its full size.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type WholeSystem, wholeSystem } from '../../kit/agent/whole-system.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

/** Requests that the server has logged, as `GET /metadata/timestamp.json 304`. */
function requests({ server }: WholeSystem): string[] {
  const lines = server.stderr().split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === 'request')
    .map(({ method, path, status }) => `${method} ${path} ${status}`);
}

/** Each write, creation and removal changes one of these values. */
function identities(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    const { ino, size, mode, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true });
    const own = `${path} ${ino} ${size} ${mode} ${mtimeNs} ${ctimeNs}`;
    return entry.isDirectory() ? [own, ...identities(path)] : [own];
  });
}

const sizes = {
  usual: { files: 1000, zoneLines: 100_000 },
  full: { files: 10_000, zoneLines: 1_000_000 },
};
const linesPerWrite = 10_000;

/** Rule files of 1 to 7 kB in 100 folders, text that compresses as rules do, and one zone of 36 bytes a line. */
function writePolicy(directory: string, { files, zoneLines }: { files: number; zoneLines: number }): string {
  for (let folder = 0; folder < 100; folder += 1)
    mkdirSync(join(directory, `rules-${folder}`), { recursive: true });
  for (let file = 0; file < files; file += 1) {
    const token = createHash('sha256').update(String(file)).digest('hex');
    const rule = (line: number): string =>
      `allow ${token.slice(line % 40, (line % 40) + 20)} from 10.${line}\n`;
    const lines = Array.from({ length: 25 + ((file * 7919) % 150) }, (_, line) => rule(line));
    writeFileSync(join(directory, `rules-${file % 100}/rule-${file}.conf`), lines.join(''));
  }
  for (let from = 0; from < zoneLines; from += linesPerWrite) {
    const lines = Array.from(
      { length: linesPerWrite },
      (_, line) => `h${String(from + line).padStart(9, '0')}.bad.example.net CNAME .\n`,
    );
    writeFileSync(join(directory, 'block.rpz'), lines.join(''), { flag: 'a' });
  }
  return directory;
}

/** @returns the peak resident memory of a process, in megabytes */
function peakMegabytes(pid: number): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return (Number(kilobytes) * 1024) / 1_000_000;
}

describe('the agent', { timeout: 300_000 }, () => {
  it('sends two requests and writes nothing when there is nothing to do', async () => {
    using dir = tempDir();
    await using writ = await wholeSystem(dir, { config: { bundles: [{ name: 'access' }] } });
    await writ.publish({ 'policy.yaml': 'version: 1\n' });
    await writ.startAgent();
    await writ.nextPoll();
    await writ.nextPoll();
    const before = [...identities(writ.state), ...identities(writ.run)];
    for (let polls = 0; polls < 3; polls += 1) assert.equal((await writ.nextPoll())['outcome'], 'unchanged');
    assert.deepEqual([...identities(writ.state), ...identities(writ.run)], before);
    const { stderr } = await writ.stopAgent();
    const polls = stderr.match(/"outcome":"unchanged".*"cycle ended"/g)?.length ?? 0;
    assert.ok(polls >= 4, stderr);
    const sinceActivation = (): string[] =>
      requests(writ).slice(requests(writ).findIndex((one) => one.startsWith('GET /targets/')) + 1);
    await until(() => sinceActivation().length >= 2 * polls);
    const questions = ['GET /metadata/2.root.json 404', 'GET /metadata/timestamp.json 304'];
    assert.deepEqual(sinceActivation(), Array.from({ length: polls }, () => questions).flat());
  });

  it('activates a policy of many files and a large zone within 150 MB of memory', async (t) => {
    using dir = tempDir();
    const size = process.env['WRIT_TEST_FULL'] === '1' ? sizes.full : sizes.usual;
    const source = writePolicy(dir.join('policy'), size);
    await using writ = await wholeSystem(dir, { config: { bundles: [{ name: 'big' }] }, pollEvery: '30d' });
    await writ.publish({ 'small.conf': 'x\n' });
    await writ.startAgent();
    assert.equal((await writ.pull()).exitCode, 0);
    const pid = writ.agent().child.pid ?? 0;
    const idle = peakMegabytes(pid);
    await writ.publish(source);
    const pull = await writ.pull();
    assert.equal(pull.exitCode, 0, JSON.stringify(pull));
    assert.equal(readdirSync(join(writ.policy, 'current/big')).length, 101);
    const peak = peakMegabytes(pid);
    const seconds = Number(pull.json['durationMs']) / 1000;
    t.diagnostic(
      `${size.files + 1} files: ${seconds} s, peak ${peak.toFixed(0)} MB, idle ${idle.toFixed(0)} MB`,
    );
    assert.ok(peak <= 150, `${peak} MB`);
  });
});
