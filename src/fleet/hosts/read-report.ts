// Parses a report or an enrolment request: bounds, UTF-8, JSON, schema, and rules that a schema cannot express. Refuses an invalid
// body as a unit. A refusal never repeats content of the body.
import { isHostKey, keyLike } from '../../core/fleet/host-names.js';
import { type EnrolRequest, type FleetReport, fleetBounds } from '../../core/fleet/report.js';
import { enrolSchema, reportSchema } from '../../core/fleet/report-schema.js';
import { validatorOf } from '../../core/schema/own-schemas.js';
import { countJsonValues, maxJsonValues } from '../bodies/count-values.js';

export type ReadBody<T> =
  | { readonly kind: 'read'; readonly data: T }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * @returns the report, or the reason why the body is invalid: also when a bundle and channel, or an outcome number,
 * occurs twice
 */
export function readReport(body: Uint8Array): ReadBody<FleetReport> {
  const read = named(readBody<FleetReport>(body, reportSchema));
  if (read.kind === 'refused') return read;
  const { bundles, outcomes } = read.data;
  // These members are the key of a row, and one statement cannot write a row twice.
  const isTwice =
    hasTwice(bundles.map(({ bundle, channel }) => JSON.stringify([bundle, channel]))) ||
    hasTwice(outcomes.map(({ n }) => n));
  return isTwice ? { kind: 'refused', reason: 'a bundle or an outcome occurs twice' } : read;
}

/** @returns the enrolment request, or the reason why the body is invalid. Throws nothing. */
export function readEnrolRequest(body: Uint8Array): ReadBody<EnrolRequest> {
  return named(readBody<EnrolRequest>(body, enrolSchema));
}

/** Refuses a name in the form of a key: requests for the host with that key could return this host. */
function named<T extends { readonly host: string }>(read: ReadBody<T>): ReadBody<T> {
  if (read.kind === 'refused' || !isHostKey(read.data.host)) return read;
  return {
    kind: 'refused',
    reason: `the name of a host must not have the form of ${keyLike}: set \`host.id\``,
  };
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
  // Refuse deep nesting: serializing it recurses, and a failure there would fail the whole batch.
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
