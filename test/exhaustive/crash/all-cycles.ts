// Every cycle that is replayed: those of a host in good order, and those that begin where a power cut has left it. A
// start that recovers is cut short like any other: it must come to the same end from wherever it was stopped.
import * as fs from 'node:fs';
import { type DiskStory, imageOf, writeImage } from '../power/disk-image.js';
import { recordIn } from '../replay/record-cycle.js';
import { type ReplayCycle, replayCycles } from '../replay/replay-cycles.js';

/** Behind the first change of this kind the power goes for the first time, with all on the disk that had happened. */
interface FirstCut {
  readonly name: string;
  readonly behind: RegExp;
}

const firstCuts: readonly FirstCut[] = [
  { name: 'a start behind a cut before the link', behind: /^rename .*journal\.json$/ },
  { name: 'a start behind a cut behind the link', behind: /^rename .*policy\/current$/ },
];

function recoveryOf(update: ReplayCycle, { name, behind }: FirstCut): ReplayCycle {
  return {
    name,
    argv: ['pull'],
    prepare: async (world) => {
      const expectation = await update.prepare(world);
      const { story } = await recordIn(world, update, expectation);
      const cut = cutBehind(story, behind);
      fs.rmSync(world.disk, { recursive: true });
      writeImage(imageOf(story, cut, new Map()), world.disk);
      // A second cut in the same place sends the host back to the old policy: by design (agent/state/recovery-rules.ts).
      return expectation;
    },
  };
}

/** @returns the changes up to that one and the flush behind it */
function cutBehind({ changes }: DiskStory, behind: RegExp): number[] {
  const last = changes.findIndex(({ label }) => behind.test(label));
  if (last < 0) throw new Error(`the update has no ${behind}`);
  return [...changes.keys()].slice(0, last + 2);
}

const update = replayCycles.filter(({ name }) => name === 'update');

export const allCycles: readonly ReplayCycle[] = [
  ...replayCycles,
  ...update.flatMap((one) => firstCuts.map((cut) => recoveryOf(one, cut))),
];
