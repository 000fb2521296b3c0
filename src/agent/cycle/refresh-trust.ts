// The `refresh` step: brings the trusted metadata up to date, and remembers when the server asked for quiet.

import { problemOf } from '../../core/cycle/problem.js';
import { isWritError, WritError } from '../../core/errors.js';
import type { CycleFindings } from '../job/cycle-result.js';
import type { CycleStory } from '../job/progress.js';
import type { Host } from '../state/host.js';
import { mirrorText, noteMirrorFailures } from './note-mirrors.js';

export interface RefreshRequest {
  readonly force: 'yes' | 'no';
  readonly signal: AbortSignal;
}

/** @throws WritError every code of trust and transport */
export async function refreshTrust(
  host: Host,
  story: CycleStory,
  request: RefreshRequest,
  findings: CycleFindings,
): Promise<void> {
  await story.step('refresh', async () => {
    const conditional = request.force === 'yes' ? 'no' : 'yes';
    try {
      const refreshed = await host.client.refresh({ conditional, signal: request.signal });
      const { roles, warnings, changed, mirror, failures } = refreshed;
      noteMirrorFailures({ host, story, findings }, failures);
      findings.warnings.push(
        ...warnings.map(({ code, message, facts }) => problemOf(new WritError(code, message, { facts }))),
      );
      findings.refresh = { atMs: host.clock.nowMs() };
      const from = mirrorText(mirror, host.config.repository.length);
      const text = `timestamp v${roles.timestamp.version}${changed ? '' : ', nothing new'}${from}`;
      return { value: undefined, text, verdict: warnings.length + failures.length > 0 ? 'warn' : 'ok' };
    } catch (error) {
      noteRetryAfter(host, error);
      // Ended by us, before or after the server was reached: nothing new is known about it.
      if (isWritError(error) && error.code !== 'INTERRUPTED')
        findings.refresh = { atMs: host.clock.nowMs(), error };
      throw error;
    }
  });
}

/** Kept on disk: a restart must not hurry a server that asked for time. */
function noteRetryAfter(host: Host, error: unknown): void {
  if (!isWritError(error) || error.code !== 'SERVER_BUSY') return;
  const { retryAfterMs } = error.facts;
  if (typeof retryAfterMs !== 'number') return;
  const retryAfterUntilMs = host.clock.nowMs() + retryAfterMs;
  host.ledger.write({ ...host.ledger.read(), retryAfterUntilMs });
}
