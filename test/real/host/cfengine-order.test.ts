// The order of trust with a parser that executes its input: cf-promises, without its protection. Unsigned or changed files
// never reach it.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { wholeSystem } from '../../kit/agent/whole-system.js';
import { flipBit } from '../../kit/disk/damage-file.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';

const options = { timeout: 240_000, ...needs('cf-promises', 'cfengine3') };

/** Without `--eval-functions=no` and a sandbox, so that it executes each file that it gets. */
const run = ['cf-promises', '--color=never', '-c', '-w', '{scratch}', '-f', '{bundle}/promises.cf'];
const config = {
  sandbox: 'off',
  bundles: [{ name: 'cfengine', checks: [{ name: 'policy parses', run, timeout: '60s' }] }],
};

/** Policy that creates the file `mark` when it is parsed. */
function release(version: number, mark: string): Record<string, string> {
  const policy = `body common control { bundlesequence => { "main" }; }
bundle agent main
{
  vars:
    "version" string => "${version}";
    "mark" string => execresult("/usr/bin/touch ${mark}", "noshell");
}
`;
  return { 'promises.cf': policy };
}

/** Changes the first letter of the only signature of the timestamp. */
function spoilSignature(dir: TempDir): void {
  const path = dir.join('repo/metadata/timestamp.json');
  const spoilt = readFileSync(path, 'utf8').replace(
    /"sig":\s*"(.)/,
    (found, letter: string) => found.slice(0, -1) + (letter === 'a' ? 'b' : 'a'),
  );
  writeFileSync(path, spoilt);
}

/** Changes a byte in the middle of every archive. */
function spoilArchives(dir: TempDir): void {
  const folder = dir.join('repo/targets/cfengine');
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    flipBit(path, Math.floor(statSync(path).size / 2));
  }
}

describe('a parser that executes its input', options, () => {
  it('gets no file before signature and digest are verified', async () => {
    using dir = tempDir();
    const mark = dir.join('was-parsed');
    await using writ = await wholeSystem(dir, { config, pollEvery: '30d' });
    await writ.publish(release(1, mark));
    await writ.startAgent();
    assert.equal((await writ.pull()).exitCode, 0);
    assert.ok(existsSync(mark), 'the check does execute: this is what must not come too early');

    const attacks = [
      { version: 2, code: /^DOWNLOAD_DIGEST$/, spoil: spoilArchives },
      { version: 3, code: /^SIGNATURE_/, spoil: spoilSignature },
    ];
    for (const { version, code, spoil } of attacks) {
      rmSync(mark, { force: true });
      const current = writ.current();
      await writ.publish(release(version, mark));
      spoil(dir);
      const pull = await writ.pull();
      assert.equal(pull.exitCode, 1, JSON.stringify(pull.json));
      assert.match(String(pull.json['code']), code);
      assert.equal(existsSync(mark), false, `${code}: it was parsed`);
      assert.equal(writ.current(), current);
    }
  });
});
