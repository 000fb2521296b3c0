// Reads a report or a request to enrol from the bytes that came: bounds, UTF-8, JSON, schema, and what a schema cannot say.
// A body beyond them is refused whole. Verdicts only; never shows what a body holds.
import { isHostKey, keyLike } from '../../core/fleet/host-names.js';
import { type EnrolRequest, type FleetReport, fleetBounds } from '../../core/fleet/report.js';
import { enrolSchema, reportSchema } from '../../core/fleet/report-schema.js';
import { validatorOf } from '../../core/schema/own-schemas.js';
import { countJsonValues, maxJsonValues } from '../bodies/count-values.js';

export type ReadBody<T> =
  | { readonly kind: 'read'; readonly data: T }
  | { readonly kind: 'refused'; readonly reason: string };

export function readReport(body: Uint8Array): ReadBody<FleetReport> {
  const read = named(readBody<FleetReport>(body, reportSchema));
  if (read.kind === 'refused') return read;
  const { bundles, outcomes } = read.data;
  // Each is a row by these names: one batch cannot write a row twice.
  const isTwice =
    hasTwice(bundles.map(({ bundle, channel }) => JSON.stringify([bundle, channel]))) ||
    hasTwice(outcomes.map(({ n }) => n));
  return isTwice ? { kind: 'refused', reason: 'a bundle or an outcome occurs twice' } : read;
}

export function readEnrolRequest(body: Uint8Array): ReadBody<EnrolRequest> {
  return named(readBody<EnrolRequest>(body, enrolSchema));
}

/** A name that looks like the key of another host would answer for that one. */
function named<T extends { readonly host: string }>(read: ReadBody<T>): ReadBody<T> {
  if (read.kind === 'refused' || !isHostKey(read.data.host)) return read;
  return { kind: 'refused', reason: `the name of a host must not look like ${keyLike}: set \`host.id\`` };
}

function readBody<T>(body: Uint8Array, schema: object): ReadBody<T> {
  if (body.length > fleetBounds.maxReportBytes) return { kind: 'refused', reason: 'it is too large' };
  if (countJsonValues(body) > maxJsonValues) return { kind: 'refused', reason: 'it has too many values' };
  let data: unknown;
  try {
    data = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return { kind: 'refused', reason: 'it is not JSON in UTF-8' };
  }
  // What is written again is written by recursion: one that is too deep would take the batch that it came in with it.
  if (!isWithin(data, fleetBounds.maxDepth)) return { kind: 'refused', reason: 'it is nested too deeply' };
  const validate = validatorOf(schema);
  if (validate(data)) return { kind: 'read', data: data as T };
  const [mistake] = validate.errors ?? [];
  return {
    kind: 'refused',
    reason: `${mistake?.instancePath.slice(0, 200) ?? ''} ${mistake?.keyword ?? ''}`,
  };
}

function isWithin(data: unknown, depth: number): boolean {
  if (typeof data !== 'object' || data === null) return true;
  return depth > 0 && Object.values(data).every((one) => isWithin(one, depth - 1));
}

function hasTwice(values: readonly (string | number)[]): boolean {
  return new Set(values).size !== values.length;
}
