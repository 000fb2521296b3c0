// Where the release of a bundle stands in its bake time, for `writ status`. Pure: a report in, text out.
import type { BundleStatus, StatusReport } from '../../core/protocol/control-protocol.js';
import type { BakeWait } from '../../core/status/bundle-status.js';
import { roughly } from './show-text.js';

/** @returns where the release stands after its activation; `-` without a bake time */
export function bakeText(bake: BundleStatus['bake']): string {
  if (bake === undefined) return '-';
  const { state, leftMs = 0, untaken, waitsFor, observed } = bake;
  if (state === 'failed') return 'FAILED';
  if (state === 'settled') return observed === false ? 'settled, not observed' : 'settled';
  if (untaken) return 'no worker has it';
  return waitsFor === undefined ? `baking, ${roughly(leftMs)} left` : 'baking, waits';
}

/** @returns what each bake time waits for that does not pass, or that is over without an end */
export function bakeWaitLines({ bundles }: Pick<StatusReport, 'bundles'>): string[] {
  return bundles.flatMap(({ bundle, serial, bake }) =>
    bake?.waitsFor === undefined
      ? []
      : [`  bake time ${bundle} ${serial ?? ''} waits for ${bakeWaitText(bake.waitsFor)}`],
  );
}

export function bakeWaitText({ what, of = [] }: BakeWait): string {
  const names = of.join(', ');
  switch (what) {
    case 'worker':
      return `a living worker that has taken the release, of ${names}`;
    case 'probe':
      return `a right answer of the probe of ${names}`;
    case 'contact':
      return 'an answer of the server';
    case 'agent':
      return 'an agent that observes this host (writ agent)';
    case 'pause':
      return 'the end of the pause, in which its probe is not asked (writ resume)';
    case 'set':
      return `the bake time of ${names}, which moves together with it`;
  }
}
