// What happens between the commands of docs/operations.md without anybody typing it there, by the name that the page's
// comments give it: accidents, thefts, and looks at what a runbook has really done.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import type { Machine, RunbookWorld } from './runbook-world.js';

type Event = (world: RunbookWorld) => Promise<void>;

export const runbookEvents: Readonly<Record<string, Event>> = {
  'ben loses his key': async ({ dir }) => fs.rmSync(dir.join('ben', 'home', 'ben.key')),
  'the office burns down': async ({ dir }) => {
    fs.rmSync(dir.join('office', 'home'), { recursive: true });
    fs.mkdirSync(dir.join('office', 'home'));
  },
  'a bad release': async (world) => {
    await typed(world, 'office', 'echo "example.com CNAME ." > policy/block.rpz', 'of-the-office');
    await publish(world, 'bad');
  },
};

async function publish(world: RunbookWorld, revision: string): Promise<void> {
  const places = '--repository repo --keys keys';
  for (const command of [
    'rsync -a writ@server:/srv/writ/repo/ repo/',
    `writ publish policy ${places} --bundle dns-edge --revision ${revision}`,
    'rsync -a repo/targets/ writ@server:/srv/writ/repo/targets/',
    'rsync -a --exclude=timestamp.json repo/metadata/ writ@server:/srv/writ/repo/metadata/',
  ]) {
    await typed(world, 'office', command, 'of-the-office');
  }
  await typed(world, 'server', 'writ refresh --repository /srv/writ/repo --keys /etc/writ/online');
}

async function typed(
  world: RunbookWorld,
  machine: Machine,
  text: string,
  ...passphrases: readonly string[]
): Promise<string> {
  const run = await world.type(machine, text, { typed: passphrases });
  assert.equal(run.exitCode, 0, run.output);
  return run.output;
}
