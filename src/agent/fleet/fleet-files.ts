// The documents in `fleet` of the state directory: the key with its enrolment, the counter, and the outcomes that no server
// has stored yet. Owns their shapes and limits; host-state uses them.
import { join } from 'node:path';
import type { OutcomeReport } from '../../core/fleet/report.js';
import { fleetBounds } from '../../core/fleet/report.js';
import { maxCounter } from '../../core/fleet/signed-request.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { openStateFile, type StateFile } from '../state/state-file.js';

/** Key and enrolment in one document, so that a key is never combined with the enrolment of another key. */
export interface FleetKeyFile {
  readonly writ: 1;
  /** The installation that owns the key. A cloned image has another id, and then creates its own key. */
  readonly installId: string;
  /** base64 of PKCS 8; empty before a key exists. */
  readonly secret: string;
  readonly enrolment?: FleetEnrolment;
}

export interface FleetEnrolment {
  readonly fleet: string;
  readonly keyId: string;
  /** The server that enrolled the key. */
  readonly url: string;
  readonly state: 'accepted' | 'waiting';
}

export interface CounterFile {
  readonly writ: 1;
  /** An upper limit of every counter that was sent. */
  readonly reserved: number;
}

export interface OutcomesFile {
  readonly writ: 1;
  /** Number of the newest outcome. */
  readonly last: number;
  /** Number of outcomes that were dropped unsent since a server last stored one. */
  readonly dropped: number;
  readonly pending: readonly OutcomeReport[];
  /** Time and fingerprint of the last report that a server stored. */
  readonly acknowledged?: { readonly atMs: number; readonly news: string };
}

export interface FleetFiles {
  readonly key: StateFile<FleetKeyFile>;
  readonly counter: StateFile<CounterFile>;
  readonly outcomes: StateFile<OutcomesFile>;
}

/** The pattern of a name that a server assigns, because the name is sent in headers. */
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

/** The build compiles validators from these schemas. */
export const fleetSchemas = [keySchema, counterSchema, outcomesSchema] as const;

export const noOutcomes: OutcomesFile = { writ: 1, last: 0, dropped: 0, pending: [] };
export const noCounter: CounterFile = { writ: 1, reserved: 0 };

/** Opens the documents and creates their directory. @throws WritError DISK_* */
export function openFleetFiles(directory: string, durable: DurableFs): FleetFiles {
  durable.ensureDirectory('fleet.directory', directory, 0o700);
  const at = (file: string): string => join(directory, file);
  return {
    key: openStateFile<FleetKeyFile>({
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
