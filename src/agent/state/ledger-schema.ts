// JSON Schema of ledger.json. ledger.ts documents the meaning of its members. A file that does not match is damaged, and the
// ledger is rebuilt from the other files on the disk.
import { errorCodes } from '../../core/error-codes.js';
import { maxReadSerial } from '../../core/release/serial.js';

/** Used for times too: the maximum is the latest time of a Date. */
const number = { type: 'integer', minimum: 0, maximum: 8.64e15 };
/** The ledger of Writ 0.1.0 may contain serials that are not accepted any more. */
const serial = { ...number, maximum: maxReadSerial };
const digest = { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' };
const text = { type: 'string' };
const boolean = { type: 'boolean' };
const oneOf = (...values: readonly string[]): object => ({ enum: values });
const objectOf = (additionalProperties: object): object => ({ type: 'object', additionalProperties });
const listOf = (items: object): object => ({ type: 'array', items });

/** @param members schemas by name; the name of an optional member ends with `?` */
function record(members: Readonly<Record<string, object>>): object {
  const names = Object.keys(members);
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name.replace('?', ''), members[name]])),
    required: names.filter((name) => !name.endsWith('?')),
  };
}

const release = { serial, manifestDigest: digest };
const damage = { generation: number, part: text, kind: text, 'bundle?': text, 'tree?': text, path: text };

/** JSON Schema of ledger.json; accepts unknown members, because a newer version may have added them. */
export const ledgerSchema: object = record({
  writ: { const: 1 },
  nextGeneration: { ...number, minimum: 1 },
  lastMtimeSeconds: number,
  'previous?': number,
  'lastKnownGood?': number,
  'retired?': objectOf(number),
  accepted: objectOf(listOf(record(release))),
  channels: objectOf(text),
  holds: listOf(
    record({ bundle: text, ...release, by: text, reason: text, atMs: number, 'isForced?': { const: true } }),
  ),
  'waiting?': objectOf(
    record({
      ...{ ...release, sinceMs: number, changedAtMs: number, groups: listOf(text), 'untilMs?': number },
      'vain?': record({
        ...{ tries: number, code: oneOf(...Object.keys(errorCodes)), 'isHeld?': { const: true } },
      }),
    }),
  ),
  'activatedAtMs?': objectOf(number),
  'movedAtMs?': objectOf(number),
  'pause?': record({ by: text, reason: text, atMs: number, 'untilMs?': number }),
  workers: objectOf(
    record({
      ...{ wanted: number, 'confirmed?': number, 'accepted?': number, text, atMs: number, 'process?': text },
      state: oneOf('confirmed', 'notified', 'refused', 'unreachable', 'pending'),
      ...{ 'appeared?': { const: true }, 'owed?': { const: 'restart' }, 'notificationId?': text },
      ...{ 'notifiedAtMs?': number, 'tries?': number, 'goneAtMs?': number, 'lives?': oneOf('yes', 'no') },
      ...{ 'notNowSinceMs?': number, 'replacedAtMs?': number, 'soonReplacedAtMs?': number },
      ...{ 'soonReplacements?': number, 'followsNotified?': { const: true } },
      'secondProbe?': record({ atMs: number, wrong: number }),
      'probed?': record({
        ...{
          wrong: number,
          'text?': text,
          'wrongAtMs?': number,
          'silence?': text,
          'notices?': number,
          'noticeAtMs?': number,
        },
      }),
    }),
  ),
  'unreadSets?': objectOf(record({ text, sinceMs: number })),
  'retryAfterUntilMs?': number,
  'verifiedBootId?': text,
  'spaceNeeded?': objectOf(record({ serial, unit: oneOf('bytes', 'inodes'), needed: number, atMs: number })),
  'loadedBootId?': text,
  'loadPending?': { const: true },
  'unloaded?': listOf(text),
  'unheardCanaries?': objectOf(text),
  'committedCycle?': text,
  'crashes?': record({ manifestDigests: objectOf(digest), count: number }),
  'blocked?': record({
    ...{ reason: text, atMs: number, manifestDigests: listOf(digest), 'releases?': objectOf(digest) },
    'until?': { const: 'workers' },
  }),
  'sandboxWorked?': { const: true },
  'notices?': listOf(record({ code: text, message: text, hint: text, facts: { type: 'object' } })),
  'stale?': record({
    phase: oneOf('stale', 'over'),
    sinceMs: number,
    'code?': text,
    'ranBootId?': text,
    'of?': { const: 'release' },
  }),
  'missed?': objectOf(
    record({
      ...{ 'serial?': serial, sinceMs: number, 'url?': text },
      'code?': oneOf(...Object.keys(errorCodes)),
    }),
  ),
  'settled?': number,
  'links?': objectOf(objectOf(text)),
  'scrub?': record({
    atMs: number,
    outcome: oneOf('intact', 'damaged', 'repaired'),
    damage: listOf(record(damage)),
    found: number,
    counts: record({ looks: number, damaged: number, repaired: number, failed: number }),
    failures: number,
    'behind?': record({ generation: number, text }),
  }),
  'bakes?': objectOf(
    record({
      ...{
        ...release,
        startedAtMs: number,
        observedMs: number,
        seenAtMs: number,
        'untakenAtMs?': number,
        'untakenSinceMs?': number,
        bootId: text,
      },
      'abruptBoots?': number,
      'failure?': record({
        ...{
          cause: oneOf('WORKER_DIED', 'PROBE_FAILED', 'WORKER_REFUSED', 'CONTACT_LOST'),
          text,
          atMs: number,
        },
        groups: listOf(text),
      }),
      'contact?': record({ failed: number, 'lastAtMs?': number, hadContact: boolean, tries: number }),
    }),
  ),
  'contactBefore?': record({ generation: number, reached: listOf(oneOf('repository', 'fleet')) }),
  'lostContacts?': objectOf(
    record({
      ...{ ...release, atMs: number, hadContact: boolean, tries: number, 'lastAtMs?': number },
      state: oneOf('asking', 'away', 'returned', 'held'),
    }),
  ),
  'settledReleases?': objectOf(
    listOf(record({ ...release, atMs: number, isObserved: boolean, generation: number })),
  ),
  'unsettled?': objectOf(
    record({
      ...{ sinceMs: number, restores: number, 'restoredAtMs?': number, 'corrections?': number },
      failed: listOf(record(release)),
    }),
  ),
  'runs?': objectOf(
    record({
      ...{
        process: text,
        sinceMs: number,
        watchedSinceMs: number,
        bootId: text,
        'mark?': text,
        'failure?': text,
        'isUntaken?': { const: true },
        'gone?': record({ atMs: number, livedMs: number }),
        'unobserved?': record({ fromMs: number, toMs: number }),
      },
      ends: listOf(
        record({
          ...{ atMs: number, livedMs: number, kind: oneOf('abnormal', 'clean', 'unrecorded') },
          ...{
            'wasNotified?': { const: true },
            'isAttributed?': { const: true },
            'hadNotTaken?': { const: true },
          },
        }),
      ),
    }),
  ),
});
