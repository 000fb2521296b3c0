// One round of the agent for contact with the server: makes the due attempts, records them, and acts on the result. A release that
// lost contact is rolled back by the round of the bake times, which finds the failure in the ledger.
import type { ContactServer } from '../../core/config/config.js';
import { problemOf } from '../../core/cycle/problem.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Exclusive } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { recordEvent } from '../job/record.js';
import { withoutHoldsOf } from '../select/holds-and-blocks.js';
import { pauseNow } from '../select/why-not-now-rules.js';
import { withLostContacts } from '../settled/contact-ledger.js';
import { lostContactErrors, nextLostStep } from '../settled/contact-rules.js';
import type { Host } from '../state/host.js';
import type { Ledger, LostContact } from '../state/ledger.js';
import { type Attempts, contactSteps, withAttempts } from './note-attempts.js';
import { reactivate } from './reactivate.js';

const idleGapMs = 60_000;
const leastGapMs = 500;

export interface ContactTurnOptions {
  /** Called again after a server answered, because a reload may have replaced the host. */
  readonly host: () => Host;
  readonly exclusive: Exclusive;
  /** True in an agent, which makes further rounds: its report about a held release depends on them. */
  readonly isObserved: boolean;
  /** Starts a pull when contact returns, because failed polls have delayed the next one. */
  readonly pull: () => void;
  /** Called with the end of an activation without the server, and its reason. */
  readonly onReactivated: (end: CycleEnd, reason: string) => void;
  /** Called when the status may have changed. */
  readonly onNews: () => void;
  readonly stop: AbortSignal;
}

/**
 * @returns a round; it resolves with the milliseconds until the next one, or undefined while no contact is watched, and never
 *   rejects
 */
export function createContactTurn(options: ContactTurnOptions): () => Promise<number | undefined> {
  const { host, stop } = options;
  const turn = async (): Promise<void> => {
    const before = host();
    const attempts = await askServers(before);
    const isBack = await options.exclusive(async () => {
      if (stop.aborted || host() !== before) return false;
      const after = noteAttempts(before, attempts, options);
      await reactivateOverdue(before, options);
      return after;
    });
    if (isBack) options.pull();
  };
  return async () => {
    if (!hasSteps(host())) return undefined;
    await turn().catch((error: unknown) => {
      host().log.error({ err: error }, 'contact with the server could not be observed');
    });
    return hasSteps(host()) ? gapMs(host()) : undefined;
  };
}

function hasSteps({ ledger, config, clock }: Host): boolean {
  return contactSteps(ledger.read(), config, clock.nowMs()).some(({ step }) => step.kind !== 'none');
}

function gapMs({ ledger, config, clock }: Host): number {
  const nowMs = clock.nowMs();
  const gaps = contactSteps(ledger.read(), config, nowMs).map(({ step }) => {
    if (step.kind === 'none') return idleGapMs;
    return step.kind === 'wait' ? step.untilMs - nowMs : leastGapMs;
  });
  return Math.min(idleGapMs, Math.max(leastGapMs, Math.min(idleGapMs, ...gaps)));
}

async function askServers({ ledger, config, clock, contactServer }: Host): Promise<Attempts> {
  const askedAtMs = clock.nowMs();
  const steps = contactSteps(ledger.read(), config, askedAtMs);
  const servers = new Set(steps.flatMap(({ server, step }) => (step.kind === 'ask' ? (server ?? []) : [])));
  const answers = await Promise.all(
    [...servers].map(async (server): Promise<[ContactServer, string | undefined]> => {
      return [server, await contactServer(server)];
    }),
  );
  return { askedAtMs, answers: new Map(answers) };
}

/** @returns true if contact has returned. @throws WritError DISK_* */
function noteAttempts(
  host: Host,
  attempts: Attempts,
  { isObserved, onNews }: Pick<ContactTurnOptions, 'isObserved' | 'onNews'>,
): boolean {
  const before = host.ledger.read();
  const after = withServersAway(withAttempts(before, host.config, attempts), host.clock.nowMs());
  if (after === before) return false;
  host.ledger.write(after);
  const changed = Object.entries(after.lostContacts ?? {}).filter(
    ([bundle, { state }]) => state !== before.lostContacts?.[bundle]?.state,
  );
  if (changed.length > 0) {
    const errors = lostContactErrors(after, { isObserved, lost: changed });
    const reason =
      errors.length === 0 ? 'contact is back, so the release is tried again' : (errors[0]?.message ?? '');
    recordEvent(host, {
      ...{ cycle: newCycleId(), trigger: 'pending', reason },
      problems: errors.map(problemOf),
    });
    onNews();
  }
  return changed.some(([, { state }]) => state === 'returned' || state === 'held');
}

function withServersAway(ledger: Ledger, nowMs: number): Ledger {
  const away = Object.entries(ledger.lostContacts ?? {}).filter(
    ([, lost]) => nextLostStep(lost, nowMs).kind === 'away',
  );
  if (away.length === 0) return ledger;
  const states = away.map(([bundle, lost]): [string, LostContact] => [bundle, { ...lost, state: 'away' }]);
  return withLostContacts(ledger, Object.fromEntries(states));
}

/** Does nothing during a pause, because the release is new policy. @throws WritError DISK_*, STATE_DAMAGED */
async function reactivateOverdue(host: Host, { stop, onReactivated }: ContactTurnOptions): Promise<void> {
  const ledger = host.ledger.read();
  const nowMs = host.clock.nowMs();
  const overdue = Object.entries(ledger.lostContacts ?? {}).filter(
    ([, lost]) => nextLostStep(lost, nowMs).kind === 'reactivate',
  );
  if (overdue.length === 0 || pauseNow(ledger, nowMs) !== undefined || ledger.blocked !== undefined) return;
  // Recorded first, so that a failing activation is not tried again each minute.
  const returned = overdue.map(([bundle, lost]): [string, LostContact] => [
    bundle,
    { ...lost, state: 'returned' },
  ]);
  host.ledger.write(withoutHoldsOf(withLostContacts(ledger, Object.fromEntries(returned)), returned));
  const end = await reactivate(host, overdue, stop);
  if (end !== undefined) onReactivated(end, 'the server is away, so the release is not at fault');
}
