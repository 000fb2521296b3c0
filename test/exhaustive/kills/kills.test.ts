// Real kills: SIGKILL ends the program at a call of each kind, or the call fails, and the program is started again. Here the
// first and last call of each kind of an update, and some of the others and of other cycles, which the seed chooses; `npm run
// crash:kills` tries all.
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { sampled, sampleSize } from '../../kit/assert/sample.js';
import { caseSeed, type Seeded, seeded, testCases, testSeed } from '../../kit/assert/seeded.js';
import { needs } from '../../kit/programs/real-programs.js';
import { inParallel } from '../crash/in-parallel.js';
import { type Enumerated, enumerate, errorsOf, killsOf, type Strike, tryStrike } from './kill-runs.js';
import { type KillCase, killCases, openScene, type Scene } from './kill-scenes.js';
import { firstAndLast } from './kill-sites.js';

/** Parallel processes, which mostly wait, on a machine with two cores. */
const width = 3;

function some(strikes: readonly Strike[], count: number, random: Seeded): Strike[] {
  const left = [...strikes];
  return Array.from({ length: Math.min(count, left.length) }, () =>
    left.splice(random.int(left.length), 1),
  ).flat();
}

function endsOfEachCall(strikes: readonly Strike[]): Strike[] {
  const chosen = new Set(firstAndLast(strikes.map(({ site }) => site)));
  return strikes.filter(({ site }) => chosen.has(site));
}

interface Choice {
  readonly scene: Scene;
  readonly found: Enumerated;
  readonly random: Seeded;
}

const choices: Readonly<Record<string, (choice: Choice) => Strike[]>> = {
  update: ({ scene, found, random }) => {
    const kills = killsOf(scene, found);
    const ends = endsOfEachCall(kills);
    const between = kills.filter((strike) => !ends.includes(strike));
    return [
      ...ends,
      ...some(between, testCases(4), random),
      ...some(errorsOf(scene, found), testCases(4), random),
    ];
  },
  'first start': ({ scene, found, random }) => some(killsOf(scene, found), testCases(2), random),
  rollback: ({ scene, found, random }) => some(killsOf(scene, found), testCases(2), random),
  // The only cycle that creates a socket.
  'update by a running agent': ({ scene, found, random }) => {
    const kills = killsOf(scene, found);
    return [...kills.filter(({ site }) => site.call === 'bind'), ...some(kills, testCases(2), random)];
  },
};

async function strikeSome(context: TestContext, one: KillCase, seed: number): Promise<void> {
  using scene = await openScene(one);
  const found = await enumerate(scene);
  // A cycle without changes would pass without any check.
  assert.ok(found.sites.length >= 30, `${found.sites.length} calls change the disk`);
  const strikes = sampled(choices[one.name]?.({ scene, found, random: seeded(seed) }) ?? []);
  const verdicts = await inParallel(strikes, width, tryStrike);
  const of = (kind: string): string[] =>
    verdicts
      .filter((verdict) => verdict.kind === kind)
      .map(({ strike, message = '' }) => `${strike.with} at ${strike.site.what}: ${message}`);
  context.diagnostic(`${found.sites.length} calls, ${strikes.length} struck, ${of('held').length} held`);
  assert.deepEqual(of('violated'), [], `seed ${testSeed()}`);
  // A strike that missed tried nothing. Counts of a common call shift only a little from run to run.
  const missed = [...of('elsewhere'), ...of('not-reached')];
  assert.ok(missed.length <= Math.ceil(strikes.length / 20), `not struck:\n${missed.join('\n')}`);
}

describe('a killed process', needs('strace', 'strace'), () => {
  for (const [index, one] of killCases.entries()) {
    // Preparing a cycle takes as long as some kills: a sample uses the update only.
    if (sampleSize() !== undefined && one.name !== 'update') continue;
    it(`leaves one intact policy, and the next start continues: ${one.name}`, (context) =>
      strikeSome(context, one, caseSeed(testSeed(), index)));
  }
});
