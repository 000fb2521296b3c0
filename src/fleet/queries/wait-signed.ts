// Adds signed metadata to the facts of a wait: the release was withdrawn or superseded, does not exist, or is the current one, whatever
// hosts report. Pure; counts no hosts.
import type { WaitFacts } from '../../core/fleet/answers.js';
import { type RepositoryView, signedWait } from '../../core/fleet/signed-releases.js';
import type { WaitQuestion } from './wait-query.js';

/**
 * @param facts from the reports of hosts
 * @returns the facts with what is signed: withdrawn, supersededBy, readAtMs for the current or an unread release, or absent for a
 *   serial that no repository and no host has; unchanged if no current reading lists the channel, or repositories disagree
 */
export function addSignedFacts(
  facts: WaitFacts,
  question: Pick<WaitQuestion, 'bundle' | 'channel' | 'serial' | 'sinceMs'>,
  views: readonly RepositoryView[],
): WaitFacts {
  const signed = signedWait(views, question, facts.atMs);
  if (signed === undefined) return facts;
  const { is, serial: signedSerial, readAtMs } = signed;
  const { supersededBy: _reported, ...counted } = facts;
  if (is === 'withdrawn') return { ...counted, withdrawn: true, signedSerial };
  if (is === 'superseded') return { ...counted, supersededBy: signedSerial, signedSerial };
  // Ignore hosts with a later serial for now: the next refresh of the repository confirms it, and only then ends the wait.
  if (is === 'current') return { ...counted, later: 0, signedSerial, readAtMs };
  // The release may be newer than the last refresh: a reached share waits for the next refresh.
  if (is === 'unread') return { ...facts, readAtMs };
  // Hosts that report this serial may have it from a repository that the server does not follow.
  const isKnown = facts.confirmed + facts.notified + facts.unconfirmed + facts.silent + facts.refused > 0;
  return isKnown ? facts : { ...counted, absent: true, signedSerial };
}
