// Each command of `writ` once, in an order in which each finds its input, in one directory.
import { writeFileSync } from 'node:fs';
import type { TempDir } from '../disk/temp-dir.js';
import { writeTree } from '../disk/write-tree.js';

const repository = '--repository repo';
const places = `${repository} --keys keys`;
const host = '--config agent.yaml';
const fleet = '--store fleet';
/** Name, further arguments, and outcome. */
export const walkedCommands: readonly (readonly [name: string, rest: string, outcome: string])[] = [
  ['init', `${places} --no-passphrase`, 'created'],
  ['publish', `source ${places} --bundle dns-edge`, 'published'],
  ['refresh', places, 'signed'],
  ['promote', `${places} --bundle dns-edge --from stable --to canary`, 'promoted'],
  ['inspect', 'repo', 'verified'],
  ['repo status', repository, 'ok'],
  ['repo log', repository, 'found'],
  ['repo check', repository, 'intact'],
  ['repo gc', `${repository} --yes`, 'nothing-to-remove'],
  ['repo export', `stick ${repository}`, 'exported'],
  ['key new', 'carol.key --no-passphrase', 'created'],
  ['key list', '--keys keys', 'listed'],
  ['key show', 'carol.pub', 'shown'],
  ['key passphrase', 'carol.key --no-passphrase', 'changed'],
  ['root add-key', `carol.pub ${repository} --dry-run`, 'would-propose'],
  ['root remove-key', `root-3 ${repository} --dry-run --yes`, 'would-propose'],
  ['root threshold', `3 ${repository} --dry-run --yes`, 'would-propose'],
  ['root rotate', `${repository} -o next.proposal`, 'proposed'],
  ['sign', 'next.proposal --keys keys --dry-run', 'would-sign'],
  ['root commit', `next.proposal ${places} --dry-run`, 'would-commit'],
  ['delegate', `team ${places} --paths team-*/* --key carol.pub --dry-run`, 'would-delegate'],
  ['config show', host, 'valid'],
  ['config check', 'agent.yaml', 'valid'],
  ['check', `source ${host}`, 'accepted'],
  ['pull', host, 'activated'],
  ['status', host, 'stopped'],
  ['health', host, 'warning'],
  ['history', host, 'found'],
  ['verify', host, 'intact'],
  ['diff', `--server ${host}`, 'same'],
  ['pause', `--reason test ${host}`, 'paused'],
  ['resume', host, 'resumed'],
  ['refusals', host, 'empty'],
  ['rollback', host, 'failed'],
  ['reload', host, 'failed'],
  ['doctor', host, 'warning'],
  ['fleet token', `create --for people ${fleet}`, 'created'],
  ['fleet status', fleet, 'warning'],
  ['fleet hosts', fleet, 'empty'],
  ['fleet host', `web-1 ${fleet}`, 'failed'],
  ['fleet history', `dns-edge 1 ${fleet}`, 'empty'],
  ['fleet wait', `dns-edge 1 ${fleet}`, 'nobody'],
  ['fleet log', fleet, 'found'],
  ['withdraw', `${places} --bundle dns-edge --serial 1`, 'usage'],
];

/** Writes the input of the first command. */
export function prepareWalk(dir: TempDir): void {
  writeTree(dir.join('source'), { 'block.rpz': 'one\n' });
  const [root, run] = [dir.join('repo', 'metadata', '1.root.json'), dir.join('run')];
  const config = { root, run, state: dir.join('state'), bundles: [{ name: 'dns-edge' }], sandbox: 'off' };
  writeFileSync(
    dir.join('agent.yaml'),
    JSON.stringify({ repository: `file://${dir.join('repo')}`, ...config }),
  );
}
