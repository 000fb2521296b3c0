// Tries the sandbox again while the agent runs: one that is gone is known before a release needs it. Owns when, and the note
// that a sandbox worked on this host.
import type { Exclusive } from '../job/exclusive.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import { lookForSandbox } from './sandbox.js';
import { countConfined } from './sandbox-rules.js';

const trialEveryMs = 3_600_000;
/** A trial may fail because the host is busy, and what is broken is repaired by a person. */
const retryMs = 60_000;

const changeSandbox = ledgerSection('sandboxWorked');

export interface SandboxTurnOptions {
  /** Asked each time: a reload may have replaced it. */
  readonly host: () => Host;
  readonly exclusive: Exclusive;
  readonly onNews: () => void;
}

/** @returns a turn that resolves with the milliseconds until the next one; undefined where no command needs a sandbox. It never rejects */
export function createSandboxTurn({
  host,
  exclusive,
  onNews,
}: SandboxTurnOptions): () => Promise<number | undefined> {
  // The start has tried already.
  let tried: 'once' | 'again' = 'once';
  return async () => {
    const { sandbox, config, log } = host();
    if (config.sandbox === 'off' || countConfined(config) === 0) return undefined;
    const before = sandbox.status().state;
    await lookForSandbox(host(), { tried });
    tried = 'again';
    try {
      await exclusive(async () => noteSandbox(host()));
    } catch (error) {
      log.error({ err: error }, 'that a sandbox works could not be noted');
    }
    const { state, withoutIt } = sandbox.status();
    if (state !== before) onNews();
    return withoutIt === 'refused' ? retryMs : trialEveryMs;
  };
}

/**
 * Notes whether a sandbox worked here, for the processes after this one: under `auto` a host that loses it runs commands without,
 * and that is to be known. `sandbox: off` ends the note. @throws WritError STATE_DAMAGED
 */
export function noteSandbox({ sandbox, ledger }: Pick<Host, 'sandbox' | 'ledger'>): void {
  const { mode, state } = sandbox.status();
  const known = ledger.read().sandboxWorked;
  const worked = mode === 'off' ? undefined : state === 'on' ? true : known;
  if (worked === known) return;
  // A full disk keeps no start from going on.
  using _ = ledger.tolerateDiskErrors(() => false);
  ledger.write(changeSandbox(ledger.read(), { sandboxWorked: worked }));
}
