// Adds the attempts to reach servers to the ledger, with their effect on releases, by the rules of agent/settled. Pure: its caller
// contacts the servers and writes the ledger.
import { type AgentConfig, bakeOf, type ContactServer, setOf } from '../../core/config/config.js';
import { withoutHoldsOf } from '../select/holds-and-blocks.js';
import { withLostContacts } from '../settled/contact-ledger.js';
import {
  type ContactStep,
  type LostStep,
  lostAfterAttempt,
  nextAttempt,
  nextLateAttempt,
  nextLostStep,
} from '../settled/contact-rules.js';
import { withBakes, withFailure, withRestored } from '../settled/settled-ledger.js';
import type { Bake, Ledger, LostContact } from '../state/ledger.js';

type Config = Pick<AgentConfig, 'bundles' | 'together'>;

/** The contacted servers, each with the reason why it was not reached; undefined if it answered. */
export interface Attempts {
  readonly askedAtMs: number;
  readonly answers: ReadonlyMap<ContactServer, string | undefined>;
}

export interface ContactSteps {
  readonly server: ContactServer | undefined;
  readonly step: ContactStep | LostStep;
}

/** @returns the next step of each release with contact that is watched or lost */
export function contactSteps({ bakes = {}, lostContacts = {} }: Ledger, config: Config, nowMs: number) {
  const serverOf = (bundle: string): ContactServer | undefined => bakeOf(config, bundle).contact;
  return [
    ...Object.entries(bakes).map(([bundle, bake]): ContactSteps => {
      return { server: serverOf(bundle), step: stepOfBake(bake, nowMs) };
    }),
    ...Object.entries(lostContacts).map(([bundle, lost]): ContactSteps => {
      return { server: serverOf(bundle), step: nextLostStep(lost, nowMs) };
    }),
  ];
}

function stepOfBake(bake: Bake, nowMs: number): ContactStep | LostStep {
  const { contact, failure } = bake;
  if (contact === undefined) return { kind: 'none' };
  if (failure === undefined) return nextAttempt(contact, { ...bake, nowMs });
  return failure.cause === 'CONTACT_LOST' ? nextLateAttempt(contact, nowMs) : { kind: 'none' };
}

/** @returns the ledger with these attempts noted, each where one was to be made */
export function withAttempts(ledger: Ledger, config: Config, attempts: Attempts): Ledger {
  const { bakes = {} } = ledger;
  const asked = Object.entries(bakes).flatMap(([bundle, bake]): [string, Bake][] => {
    const answer = answerFor(config, bundle, attempts);
    const isNow = stepOfBake(bake, attempts.askedAtMs).kind === 'ask';
    return answer === undefined || !isNow ? [] : [[bundle, bakeAfter(bake, answer, attempts.askedAtMs)]];
  });
  const noted = withBakes(ledger, asked);
  return withLostAttempts(withSilence(noted, config, attempts), config, attempts);
}

interface Answer {
  /** Undefined where the server answered. */
  readonly reason: string | undefined;
}

function answerFor(config: Config, bundle: string, { answers }: Attempts): Answer | undefined {
  const { contact } = bakeOf(config, bundle);
  return contact === undefined || !answers.has(contact) ? undefined : { reason: answers.get(contact) };
}

function bakeAfter(bake: Bake, { reason }: Answer, lastAtMs: number): Bake {
  const { contact, failure, ...rest } = bake;
  if (contact === undefined) return bake;
  if (reason !== undefined) return { ...bake, contact: { ...contact, failed: contact.failed + 1, lastAtMs } };
  // Nothing could be restored, and contact returned with the release, which was not at fault.
  return failure === undefined || failure.cause === 'CONTACT_LOST' ? rest : { ...rest, failure };
}

/** Records the failure of releases with failed attempts only, with their sets. */
function withSilence(ledger: Ledger, config: Config, attempts: Attempts): Ledger {
  const { bakes = {} } = ledger;
  return Object.entries(bakes).reduce((all, [bundle, bake]) => {
    if (bake.failure !== undefined || stepOfBake(bake, attempts.askedAtMs).kind !== 'lost') return all;
    const server = bakeOf(config, bundle).contact ?? 'repository';
    const reason = attempts.answers.get(server) ?? 'no answer';
    const text = `the ${server} server was not reached any more: ${reason}`;
    const failure = { cause: 'CONTACT_LOST', text, atMs: attempts.askedAtMs, groups: [] } as const;
    return withFailure(all, setOf(config, bundle), failure);
  }, ledger);
}

function withLostAttempts(ledger: Ledger, config: Config, attempts: Attempts): Ledger {
  const { askedAtMs } = attempts;
  const { lostContacts = {} } = ledger;
  const after = Object.entries(lostContacts).flatMap(([bundle, lost]): [string, LostContact][] => {
    const answer = answerFor(config, bundle, attempts);
    // An attempt that began before the restore was made with the policy that was rolled back.
    const isNow = nextLostStep(lost, askedAtMs).kind === 'ask' && askedAtMs >= lost.atMs;
    if (answer === undefined || !isNow) return [];
    return [[bundle, lostAfterAttempt(lost, { isReached: answer.reason === undefined, askedAtMs })]];
  });
  if (after.length === 0) return ledger;
  const noted = withLostContacts(ledger, Object.fromEntries(after));
  const held = after.filter(([, { state }]) => state === 'held');
  const counted = withRestored(
    noted,
    held.map(([bundle, one]) => ({ bundle, serial: one.serial, manifestDigest: one.manifestDigest })),
    askedAtMs,
  );
  return withoutHoldsOf(
    held.length === 0 ? noted : counted,
    after.filter(([, { state }]) => state === 'returned'),
  );
}
