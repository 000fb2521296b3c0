// What signed metadata adds to the facts of a wait: that a release was withdrawn or superseded, that there is none, or that it is the
// one that should be in use, whatever a host says. Pure; counts nobody.
import type { WaitFacts } from '../../core/fleet/answers.js';
import { type RepositoryView, signedWait } from '../../core/fleet/signed-releases.js';
import type { WaitQuestion } from './wait-query.js';

/** @param facts as hosts have it */
export function withSigned(
  facts: WaitFacts,
  question: Pick<WaitQuestion, 'bundle' | 'channel' | 'serial' | 'sinceMs'>,
  views: readonly RepositoryView[],
): WaitFacts {
  const signed = signedWait(views, question, facts.atMs);
  if (signed === undefined) return facts;
  const { is, serial: signedSerial, readAtMs } = signed;
  const { supersededBy: _said, ...counted } = facts;
  if (is === 'withdrawn') return { ...counted, withdrawn: true, signedSerial };
  if (is === 'superseded') return { ...counted, supersededBy: signedSerial, signedSerial };
  // Hosts that are further may be right: the next reading says so, and until then nobody ends the wait.
  if (is === 'current') return { ...counted, later: 0, signedSerial, readAtMs };
  // Perhaps published a moment ago: a share that is reached waits for the next reading.
  if (is === 'unread') return { ...facts, readAtMs };
  // Hosts that speak of this serial have it from somewhere: perhaps from a repository that the server does not read.
  const isKnown = facts.confirmed + facts.notified + facts.unconfirmed + facts.silent + facts.refused > 0;
  return isKnown ? facts : { ...counted, absent: true, signedSerial };
}
