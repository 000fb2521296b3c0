// `writ key`: keys are created, listed, shown, and encrypted with another passphrase.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf, runWrit, type WritRun } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { makeOpensslKey } from '../../../kit/programs/openssl-keys.js';
import { needs } from '../../../kit/programs/real-programs.js';
import { sampleRepository } from '../../../kit/repository/sample-repository.js';

function writ(dir: TempDir, args: readonly string[], env: Record<string, string> = {}): Promise<WritRun> {
  return runWrit(args, { cwd: dir.path, env });
}

describe('writ key new', () => {
  it('creates a private key file and a public file, and prints the next commands', async () => {
    using dir = tempDir();
    const run = await writ(dir, ['key', 'new', '--keys', 'keys', '--name', 'carol', '--no-passphrase']);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^CREATED key of carol \(ed25519\)\n/);
    assert.match(
      run.stdout,
      /\nNext: writ root add-key keys\/carol\.pub --repository DIR -o root\.proposal\n$/,
    );
    assert.match(run.stdout, /another key:\n {2}writ root rotate --remove NAME --add keys\/carol\.pub /);
    assert.match(run.stdout, /of a team by\n {2}writ delegate TEAM .* --key keys\/carol\.pub /);
    assert.equal(statSync(dir.join('keys', 'carol.key')).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(dir.join('keys')).sort(), ['carol.key', 'carol.pub']);
  });

  it('encrypts the key with the output of --passphrase-command', longCase, async () => {
    using dir = tempDir();
    const secret = ['--passphrase-command', 'printf "from a manager\\n"'];
    const run = await writ(dir, ['key', 'new', 'ben.key', ...secret, '--json']);
    assert.deepEqual([run.exitCode, jsonOf(run)['encrypted']], [0, true]);
    const back = ['key', 'passphrase', 'ben.key', '--no-passphrase', '--json'];
    const wrong = await writ(dir, [...back, '--passphrase-command', 'echo another']);
    assert.equal(jsonOf(wrong)['code'], 'PASSPHRASE_WRONG');
    for (const text of ['false', 'true', 'kill -9 $$', 'head -c 9000 /dev/zero']) {
      const none = await writ(dir, [...back, '--passphrase-command', text]);
      assert.equal(jsonOf(none)['code'], 'PASSPHRASE_NEEDED', text);
    }
    const right = await writ(dir, [...back, ...secret]);
    assert.equal(right.exitCode, 0, right.stdout);
  });

  it('refuses two paths, no path, an invalid name and an existing key', async () => {
    using dir = tempDir();
    const wrong = [
      [],
      ['a.key', '--keys', 'k'],
      ['a.txt'],
      ['a.key', '--name', ' '],
      ['a.key', '--name', '\t'],
    ];
    for (const args of wrong) {
      const run = await writ(dir, ['key', 'new', ...args, '--no-passphrase', '--json']);
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'USAGE'], args.join(' '));
    }
    writeFileSync(dir.join('a.pub'), 'here already');
    const taken = await writ(dir, ['key', 'new', 'a.key', '--no-passphrase', '--json']);
    assert.deepEqual([taken.exitCode, jsonOf(taken)['code']], [2, 'KEY_EXISTS']);
    assert.deepEqual(readdirSync(dir.path), ['a.pub']);
  });

  it('exits 2 with PASSPHRASE_NEEDED without a terminal', async () => {
    using dir = tempDir();
    const run = await writ(dir, ['key', 'new', 'a.key', '--json']);
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'PASSPHRASE_NEEDED']);
    assert.deepEqual(readdirSync(dir.path), []);
  });
});

describe('writ key list', () => {
  it('prints the name and the roles of each key without unlocking it', async () => {
    using dir = tempDir();
    sampleRepository(dir, { clock: systemClock });
    await writ(dir, ['key', 'new', 'keys/spare.key', '--no-passphrase']);
    writeFileSync(dir.join('keys', 'broken.key'), '{');
    const run = await writ(dir, ['key', 'list', '--keys', 'keys', '--repository', 'repo']);
    assert.equal(run.exitCode, 0, run.stderr);
    const rows = run.stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
    const holds = Object.fromEntries(rows.map((row) => [row[0], row.at(-1)]));
    assert.equal(holds['root-2.key'], 'root');
    assert.equal(holds['targets.key'], 'targets');
    assert.equal(holds['spare.key'], 'no role');
    assert.equal(rows.find((row) => row[0] === 'snapshot.key')?.[1], 'server');
    assert.match(run.stderr, /broken\.key cannot be read/);
    const alone = jsonOf(await writ(dir, ['key', 'list', '--keys', 'keys', '--json']));
    assert.equal((alone['keys'] as unknown[]).length, 7);
  });
});

describe('writ key show', needs('openssl', 'openssl'), () => {
  it('prints the public key of a device with the id that a root lists', async () => {
    using dir = tempDir();
    makeOpensslKey(dir, 'ecdsa', 'yubikey');
    const shown = jsonOf(await writ(dir, ['key', 'show', 'yubikey.pub.pem', '--json']));
    assert.equal(shown['name'], 'yubikey');
    assert.match(String(shown['keyId']), /^[0-9a-f]{64}$/);
    const secret = await writ(dir, ['key', 'show', 'yubikey.pem', '--json']);
    assert.deepEqual([secret.exitCode, jsonOf(secret)['code']], [1, 'KEY_UNREADABLE']);
  });
});

describe('writ key passphrase', () => {
  it('encrypts the same key with a new passphrase, and only the new one unlocks it', longCase, async () => {
    using dir = tempDir();
    writeFileSync(dir.join('old'), 'old\n');
    writeFileSync(dir.join('new'), 'new\n');
    const old = ['--passphrase-file', 'old'];
    const made = jsonOf(await writ(dir, ['key', 'new', 'a.key', '--name', 'Anna', ...old, '--json']));
    const before = readFileSync(dir.join('a.key'));
    const change = ['key', 'passphrase', 'a.key', '--json'];
    const wrong = await writ(dir, [...change, '--passphrase-file', 'new', '--new-passphrase-file', 'old']);
    assert.equal(jsonOf(wrong)['code'], 'PASSPHRASE_WRONG');
    assert.deepEqual(readFileSync(dir.join('a.key')), before);
    const run = await writ(dir, [...change, ...old, '--new-passphrase-file', 'new']);
    assert.equal(run.exitCode, 0, run.stdout);
    assert.equal(statSync(dir.join('a.key')).mode & 0o777, 0o600);
    const shown = jsonOf(await writ(dir, ['key', 'show', 'a.key', '--json']));
    assert.deepEqual([shown['keyId'], shown['name']], [made['keyId'], 'Anna']);
    const env = { WRIT_PASSPHRASE: 'old', WRIT_NEW_PASSPHRASE: 'x' };
    const gone = await writ(dir, change, env);
    assert.equal(jsonOf(gone)['code'], 'PASSPHRASE_WRONG');
    const again = await writ(dir, change, { ...env, WRIT_PASSPHRASE: 'new' });
    assert.equal(again.exitCode, 0, again.stdout);
  });

  it('exits 1 with KEY_UNREADABLE for a missing key', async () => {
    using dir = tempDir();
    const run = await writ(dir, ['key', 'passphrase', 'none.key', '--json']);
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [1, 'KEY_UNREADABLE']);
  });
});

describe('an external signer', { ...needs('openssl', 'openssl'), ...longCase }, () => {
  it('signs a publish and a refresh in place of key files', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    // The same secret key in the format of openssl.
    const pem = (name: string): string => {
      const { secret } = JSON.parse(readFileSync(`${repository.keys}/${name}.key`, 'utf8'));
      const der = Buffer.concat([
        Buffer.from('302e020100300506032b657004220420', 'hex'),
        Buffer.from(secret, 'base64'),
      ]);
      const text = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`;
      writeFileSync(dir.join(`${name}.pem`), text);
      return `openssl pkeyutl -sign -inkey ${dir.join(`${name}.pem`)} -rawin -in "$WRIT_SIGN_FILE"`;
    };
    const signers = ['targets', 'snapshot', 'timestamp'].map(pem);
    writeFileSync(dir.join('anchor'), readFileSync(`${repository.keys}/root.json`));
    const keys = ['--repository', 'repo', '--keys', 'empty'];
    await writ(dir, ['key', 'new', 'empty/none.key', '--no-passphrase']);
    mkdirSync(dir.join('source'));
    writeFileSync(dir.join('source/a'), 'a');
    const targets = ['--signer', signers[0] ?? ''];
    const first = await writ(dir, ['publish', 'source', ...keys, '--bundle', 'b', ...targets, '--json']);
    assert.deepEqual([first.exitCode, jsonOf(first)['outcome']], [0, 'signed-targets'], first.stdout);
    const online = ['--signer', `snapshot=${signers[1]}`, '--signer', `timestamp=${signers[2]}`];
    const refresh = await writ(dir, ['refresh', ...keys, ...online, '--json']);
    assert.equal(refresh.exitCode, 0, refresh.stdout);
    const wrong = await writ(dir, ['refresh', ...keys, '--signer', signers[0] ?? '', '--json']);
    assert.equal(wrong.exitCode, 1);
  });
});

describe('secret keys in a repository', () => {
  it('are refused by every command that would create or use them there', async () => {
    using dir = tempDir();
    const plain = ['--no-passphrase', '--json'];
    for (const keys of ['repo', 'repo/keys', '.']) {
      const run = await writ(dir, ['init', '--repository', 'repo', '--keys', keys, ...plain]);
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'KEYS_IN_REPOSITORY'], keys);
    }
    assert.deepEqual(readdirSync(dir.path), []);
    const made = await writ(dir, ['init', '--repository', 'repo', '--keys', 'keys', ...plain]);
    assert.equal(made.exitCode, 0, made.stdout);
    mkdirSync(dir.join('source'));
    writeFileSync(dir.join('source', 'a.rpz'), 'a');
    renameSync(dir.join('keys'), dir.join('repo/keys'));
    const at = ['--repository', 'repo', '--keys', 'repo/keys'];
    const uses = [
      ['key', 'new', 'repo/anna.key', '--no-passphrase'],
      ['key', 'new', '--keys', 'repo/new', '--name', 'anna', '--no-passphrase'],
      ['key', 'list', ...at],
      ['key', 'passphrase', 'repo/keys/targets.key', '--no-passphrase'],
      ['publish', 'source', ...at, '--bundle', 'dns'],
      ['refresh', ...at],
      ['serve', '--listen', '127.0.0.1:0', ...at],
    ];
    for (const args of uses) {
      const run = await writ(dir, [...args, '--json']);
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'KEYS_IN_REPOSITORY'], args.join(' '));
    }
    assert.ok(!readdirSync(dir.join('repo')).includes('new'));
  });
});
