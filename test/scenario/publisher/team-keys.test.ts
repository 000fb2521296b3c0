// `writ root commit` after a theft of the targets key: the command needs the key of each team, and prints what it signed.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/platform/time/clock.js';
import { proposalCode, readProposal } from '../../../src/publisher/root/proposal-file.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { newKey } from '../../kit/repository/ceremony.js';
import { delegateTo, makeTeam } from '../../kit/repository/delegated-repository.js';
import { sampleRepository, someKeys } from '../../kit/repository/sample-repository.js';

/** @returns a repository with one team, a waiting release, and the arguments that commit another targets key */
async function replacedTargetsKey(dir: TempDir) {
  const repository = sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
  const team = makeTeam(dir, 'dns-team');
  await delegateTo(repository, team);
  await repository.publish({ rule: '' }, { bundle: 'access' });
  const keys = someKeys(dir, repository, 'targets.key', 'root.json');
  await repository.publish({ rule: 'waits' }, { bundle: 'access', keys });
  newKey(dir, 'targets-2');
  const writ = (...args: readonly string[]) => runWrit(args, { cwd: dir.path });
  const places = ['--repository', 'repo', '--keys', 'keys'];
  const change = ['--replace', 'targets=keys/targets-2.pub', '--yes', '-o', 'next.proposal'];
  const made = await writ('root', 'rotate', ...change, ...places);
  assert.equal(made.exitCode, 0, made.stderr);
  const code = proposalCode(readProposal(dir.join('next.proposal')));
  const signed = await writ('sign', 'next.proposal', '--keys', 'keys', '--confirm', code);
  assert.equal(signed.exitCode, 0, signed.stderr);
  const commit = (...args: readonly string[]) => writ('root', 'commit', 'next.proposal', ...places, ...args);
  return { team, code, commit };
}

describe('writ root commit with another targets key', () => {
  it('requires the key of each team, and lists with --confirm what the new keys sign and leave out', async () => {
    using dir = tempDir();
    const { team, code, commit } = await replacedTargetsKey(dir);
    const dry = await commit('--dry-run');
    assert.match(dry.stdout, /\n {2}the keys of dns-team are not confirmed: --team-key dns-team=FILE\n/);
    const refused = await commit('--confirm', code, '--json');
    assert.deepEqual([refused.exitCode, jsonOf(refused)['code']], [2, 'TEAM_KEY_UNCONFIRMED']);
    const half = await commit('--confirm', code, '--team-key', 'dns-team', '--json');
    assert.deepEqual([half.exitCode, jsonOf(half)['code']], [2, 'USAGE']);
    const run = await commit('--confirm', code, '--team-key', `dns-team=${team.keys}/dns-team.key`);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^COMMITTED root v2\. /);
    assert.match(run.stdout, /\n {4}access stable serial 1 r1 /);
    assert.match(run.stdout, /\n {4}delegates dns-\*\/\* to dns-team, signed by 1 of [0-9a-f]{8}\n/);
    assert.match(run.stdout, /\n {2}leaves out {2}4\.targets\.json: /);
  });

  it('accepts a whole key id in place of a file', longCase, async () => {
    using dir = tempDir();
    const { team, code, commit } = await replacedTargetsKey(dir);
    const run = await commit('--confirm', code, '--team-key', `dns-team=${team.publicKey.keyId}`);
    assert.equal(run.exitCode, 0, run.stderr);
  });
});
