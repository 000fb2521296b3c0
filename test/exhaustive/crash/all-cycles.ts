// All recorded cycles: those of an intact host, and starts after a power cut. A start that recovers is interrupted like any
// other cycle, and must reach the same result from each interruption.
import * as fs from 'node:fs';
import { type DiskRecording, imageOf, writeImage } from '../power/disk-image.js';
import { recordIn } from '../replay/record-cycle.js';
import { type ReplayCycle, replayCycles } from '../replay/replay-cycles.js';

/**
 * The first power cut: right after the first change that `behind` matches, with everything on disk that had happened.
 */
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
      const { recording } = await recordIn(world, update, expectation);
      const cut = cutBehind(recording, behind);
      fs.rmSync(world.disk, { recursive: true });
      writeImage(imageOf(recording, cut, new Map()), world.disk);
      // A second cut at the same change restores the old policy by design (agent/state/recovery-rules.ts).
      return expectation;
    },
  };
}

/** @returns the indices of the changes up to the first match and the flush after it */
function cutBehind({ changes }: DiskRecording, behind: RegExp): number[] {
  const last = changes.findIndex(({ label }) => behind.test(label));
  if (last < 0) throw new Error(`the update has no ${behind}`);
  return [...changes.keys()].slice(0, last + 2);
}

const update = replayCycles.filter(({ name }) => name === 'update');

export const allCycles: readonly ReplayCycle[] = [
  ...replayCycles,
  ...update.flatMap((one) => firstCuts.map((cut) => recoveryOf(one, cut))),
];
