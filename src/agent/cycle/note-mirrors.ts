// What a cycle says of mirrors that failed while another one did not: a warning each, in the log and in the result.
// A mirror that lies is an alarm even though nothing came of it; the outcome stays what it is.

import { problemOf } from '../../core/cycle/problem.js';
import { type MirrorFailure, mirrorWarning } from '../../trust/mirrors/mirror-failures.js';
import type { CycleFindings } from '../job/cycle-result.js';
import type { CycleStory } from '../job/progress.js';
import type { Host } from '../state/host.js';

export interface NotedIn {
  readonly host: Pick<Host, 'log'>;
  readonly story: Pick<CycleStory, 'cycle'>;
  readonly findings: Pick<CycleFindings, 'warnings'>;
}

/** Makes a warning of each mirror that failed, for the result of the cycle and the log. */
export function noteMirrorFailures(
  { host, story, findings }: NotedIn,
  failures: readonly MirrorFailure[],
): void {
  for (const failure of failures) {
    const warning = problemOf(mirrorWarning(failure));
    findings.warnings.push(warning);
    host.log.warn({ cycle: story.cycle, mirror: failure.mirror, problem: warning }, 'a mirror failed');
  }
}

/** @returns words for the end of a step, where there is more than one mirror to choose from */
export function mirrorText(mirror: string, configured: number): string {
  return configured > 1 ? ` from ${mirror}` : '';
}
