// The documents in `fleet` of the state directory: the key with what it is enrolled for, the counter, and what no server has
// stored yet. Owns their shape and bounds; what is done with them is host-state's.
import { join } from 'node:path';
import type { OutcomeReport } from '../../core/fleet/report.js';
import { fleetBounds } from '../../core/fleet/report.js';
import { maxCounter } from '../../core/fleet/signed-request.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { openStateFile, type StateFile } from '../state/state-file.js';

/** One document, so that a key is never found beside what another one was enrolled for. */
export interface KeyFile {
  readonly writ: 1;
  /** Whose key it is: an image that was cloned has another one, and then a key of its own. */
  readonly installId: string;
  /** base64 of PKCS 8; empty before there is one. */
  readonly secret: string;
  readonly enrolment?: Enrolment;
}

export interface Enrolment {
  readonly fleet: string;
  readonly keyId: string;
  /** Where it was asked for. */
  readonly url: string;
  readonly state: 'accepted' | 'waiting';
}

export interface CounterFile {
  readonly writ: 1;
  /** No counter above it was ever sent. */
  readonly reserved: number;
}

export interface OutcomesFile {
  readonly writ: 1;
  /** Number of the last outcome that there was. */
  readonly last: number;
  /** So many were given up, unsent, since a server last stored any. */
  readonly dropped: number;
  readonly pending: readonly OutcomeReport[];
  /** What a server stored last, apart from times. */
  readonly acknowledged?: { readonly atMs: number; readonly news: string };
}

export interface FleetFiles {
  readonly key: StateFile<KeyFile>;
  readonly counter: StateFile<CounterFile>;
  readonly outcomes: StateFile<OutcomesFile>;
}

/** Of what a server gives as a name: it goes into headers. */
export const givenName = '^[A-Za-z0-9._:-]{1,128}$';

const text = { type: 'string', maxLength: 2000 };
const count = { type: 'integer', minimum: 0, maximum: maxCounter };
const name = { type: 'string', pattern: givenName };
const base = { writ: { const: 1 } };

const keySchema = {
  type: 'object',
  required: ['writ', 'installId', 'secret'],
  properties: {
    ...base,
    installId: text,
    secret: text,
    enrolment: {
      type: 'object',
      required: ['fleet', 'keyId', 'url', 'state'],
      properties: { fleet: name, keyId: name, url: text, state: { enum: ['accepted', 'waiting'] } },
    },
  },
};

const counterSchema = {
  type: 'object',
  required: ['writ', 'reserved'],
  properties: { ...base, reserved: count },
};

const outcome = {
  type: 'object',
  required: ['n', 'trigger', 'outcome', 'atMs', 'bundles'],
  properties: { n: count, trigger: text, outcome: text, code: text, atMs: count, bundles: { type: 'array' } },
};
const outcomesSchema = {
  type: 'object',
  required: ['writ', 'last', 'dropped', 'pending'],
  properties: {
    ...base,
    last: count,
    dropped: count,
    pending: { type: 'array', maxItems: fleetBounds.maxOutcomes, items: outcome },
    acknowledged: {
      type: 'object',
      required: ['atMs', 'news'],
      properties: { atMs: count, news: text },
    },
  },
};

/** For the build, which makes their validators. */
export const fleetSchemas = [keySchema, counterSchema, outcomesSchema] as const;

export const noOutcomes: OutcomesFile = { writ: 1, last: 0, dropped: 0, pending: [] };
export const noCounter: CounterFile = { writ: 1, reserved: 0 };

/** @throws WritError DISK_* */
export function openFleetFiles(directory: string, durable: DurableFs): FleetFiles {
  durable.ensureDirectory('fleet.directory', directory, 0o700);
  const at = (file: string): string => join(directory, file);
  return {
    key: openStateFile<KeyFile>({
      ...{ path: at('key.json'), op: 'fleet.key', schema: keySchema, durable },
      initial: { writ: 1, installId: '', secret: '' },
    }),
    counter: openStateFile<CounterFile>({
      ...{ path: at('counter.json'), op: 'fleet.counter', schema: counterSchema, durable },
      initial: noCounter,
    }),
    outcomes: openStateFile<OutcomesFile>({
      ...{ path: at('outcomes.json'), op: 'fleet.outcomes', schema: outcomesSchema, durable },
      initial: noOutcomes,
    }),
  };
}
