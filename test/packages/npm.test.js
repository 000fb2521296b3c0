// The npm tarball, installed globally, with an error if a package requires a newer Node. The test uses this
// Node, the oldest supported one, and the newest LTS, which the Debian packages contain.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fetchNode } from '../../scripts/packaging/node-runtime.js';

const built = process.env.WRIT_PACKAGES;
const root = join(import.meta.dirname, '../..');
const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'));
const { version } = read('package.json');
const tarball = join(
  built,
  readdirSync(built).find((one) => one.endsWith('.tgz')),
);
const folder = mkdtempSync('/var/tmp/writ-npm-');
after(() => rmSync(folder, { recursive: true, force: true }));

const architecture = { x64: 'amd64', arm64: 'arm64' }[process.arch];
const programs = {
  'this Node': () => process.execPath,
  'the newest LTS': () => fetchNode(root, architecture, join(folder, 'node')).program,
};

describe('the npm tarball', () => {
  for (const [name, programOf] of Object.entries(programs))
    it(`installs globally on ${name}, and answers`, () => {
      const program = programOf();
      const prefix = mkdtempSync(join(folder, 'prefix-'));
      const env = { ...process.env, PATH: `${dirname(program)}:${process.env.PATH}` };
      const output = (command, ...args) => execFileSync(command, args, { env, encoding: 'utf8' });
      const expected =
        name === 'this Node' ? process.versions.node : read('packaging/node-runtime.json').version;
      assert.equal(output('node', '--version'), `v${expected}\n`);

      const options = ['--global', '--engine-strict', '--prefix', prefix, '--no-audit', '--no-fund'];
      const installed = spawnSync('npm', ['install', ...options, tarball], { env, encoding: 'utf8' });
      assert.equal(installed.status, 0, installed.stderr);

      const writ = join(prefix, 'bin/writ');
      assert.equal(output(writ, '--version'), `${version}\n`);
      assert.match(output(writ, 'fleet', '--help'), /^Usage: writ fleet/m);
      assert.match(output(writ, 'fleet', 'serve', '--help'), /--store/);
    });

  it('has no source map, and no line that names one', () => {
    const names = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).split('\n');
    assert.ok(names.includes('package/dist/writ/main.js'));
    assert.deepEqual(
      names.filter((one) => one.endsWith('.map')),
      [],
    );
    const programFiles = execFileSync('tar', ['-xOzf', tarball, 'package/dist/writ'], {
      encoding: 'utf8',
      maxBuffer: 64_000_000,
    });
    assert.doesNotMatch(programFiles, /^\/\/# sourceMappingURL=/m);
  });
});
