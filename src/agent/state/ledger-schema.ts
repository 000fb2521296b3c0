// What a ledger.json must look like to be believed at all. Owns shapes, no meaning: those are ledger's. A file that does
// not fit is damaged, and is made anew from what lies on the disk.
import { errorCodes } from '../../core/error-codes.js';

const number = { type: 'integer', minimum: 0 };
const digest = { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' };
const text = { type: 'string' };
const objectOf = (additionalProperties: object): object => ({ type: 'object', additionalProperties });
const listOf = (items: object): object => ({ type: 'array', items });
const record = (properties: Record<string, object>, required: readonly string[]): object => ({
  type: 'object',
  properties,
  required: [...required],
});

/** JSON Schema of ledger.json; members that a newer version added are let through. */
export const ledgerSchema: object = record(
  {
    writ: { const: 1 },
    nextGeneration: { type: 'integer', minimum: 1 },
    lastMtimeSeconds: number,
    previous: number,
    lastKnownGood: number,
    retired: objectOf(number),
    accepted: objectOf(
      listOf(record({ serial: number, manifestDigest: digest }, ['serial', 'manifestDigest'])),
    ),
    channels: objectOf(text),
    holds: listOf(
      record({ bundle: text, serial: number, manifestDigest: digest, by: text, reason: text, atMs: number }, [
        'bundle',
        'serial',
        'manifestDigest',
        'by',
        'reason',
        'atMs',
      ]),
    ),
    waiting: objectOf(
      record(
        {
          ...{ serial: number, manifestDigest: digest, sinceMs: number, changedAtMs: number },
          ...{ groups: listOf(text), untilMs: number },
          vain: record({ tries: number, code: { enum: Object.keys(errorCodes) } }, ['tries', 'code']),
        },
        ['serial', 'manifestDigest', 'sinceMs', 'changedAtMs', 'groups'],
      ),
    ),
    activatedAtMs: objectOf(number),
    movedAtMs: objectOf(number),
    pause: record({ by: text, reason: text, atMs: number, untilMs: number }, ['by', 'reason', 'atMs']),
    workers: objectOf(
      record(
        {
          ...{ wanted: number, confirmed: number, state: text, text, atMs: number },
          ...{
            process: text,
            appeared: { const: true },
            owed: { const: 'restart' },
            tell: text,
            toldAtMs: number,
            tries: number,
            goneAtMs: number,
          },
        },
        ['wanted', 'state', 'text', 'atMs'],
      ),
    ),
    unreadSets: objectOf(record({ text, sinceMs: number }, ['text', 'sinceMs'])),
    retryAfterUntilMs: number,
    verifiedBootId: text,
    spaceNeeded: objectOf(
      record({ serial: number, unit: { enum: ['bytes', 'inodes'] }, needed: number, atMs: number }, [
        'serial',
        'unit',
        'needed',
        'atMs',
      ]),
    ),
    loadedBootId: text,
    loadDue: { const: true },
    committedCycle: text,
    crashes: record({ manifestDigests: objectOf(digest), count: number }, ['manifestDigests', 'count']),
    blocked: record(
      { reason: text, atMs: number, manifestDigests: listOf(digest), releases: objectOf(digest) },
      ['reason', 'atMs', 'manifestDigests'],
    ),
    notices: listOf(
      record({ code: text, message: text, hint: text, facts: { type: 'object' } }, [
        'code',
        'message',
        'hint',
        'facts',
      ]),
    ),
    stale: record({ phase: { enum: ['stale', 'over'] }, sinceMs: number, code: text, ranBootId: text }, [
      'phase',
      'sinceMs',
    ]),
    settled: number,
    links: objectOf(objectOf(text)),
    scrub: record(
      {
        atMs: number,
        outcome: { enum: ['whole', 'damaged', 'repaired'] },
        damage: listOf(
          record({ generation: number, part: text, kind: text, bundle: text, tree: text, path: text }, [
            'generation',
            'part',
            'kind',
            'path',
          ]),
        ),
        found: number,
        counts: record({ looks: number, damaged: number, repaired: number, failed: number }, [
          'looks',
          'damaged',
          'repaired',
          'failed',
        ]),
        failures: number,
        behind: record({ generation: number, text }, ['generation', 'text']),
      },
      ['atMs', 'outcome', 'damage', 'found', 'counts', 'failures'],
    ),
  },
  ['writ', 'nextGeneration', 'lastMtimeSeconds', 'accepted', 'channels', 'holds', 'workers'],
);
