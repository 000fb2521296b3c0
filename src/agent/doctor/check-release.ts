// `writ doctor`, check `release`: whether the mirrors serve a release that this host does not have yet. Requests the first byte of the
// file of the last attempt from each mirror and discards it. `judgeByte` is pure.
import type { MirrorConfig } from '../../core/config/config.js';
import { toWritError } from '../../core/errors.js';
import type { MissedStatus } from '../../core/status/missed-release.js';
import { type MirrorContext, openMirrorClient } from './check-server.js';
import { type Checks, type DoctorContext, reportOf } from './doctor-context.js';
import { type CheckFailure, fail, failOf, type Judged, ok, skip, warn } from './judged.js';

/** @returns the check `release`. It requests bytes only when it runs. */
export function releaseChecks(context: DoctorContext): Checks {
  return [['release', () => examineReleases(context)]];
}

async function examineReleases(context: DoctorContext): Promise<Judged[]> {
  const { config } = context;
  const missed = (reportOf(context)?.bundles ?? []).flatMap(({ bundle, missed: one }) =>
    one === undefined ? [] : { bundle, ...one },
  );
  if (config === undefined || missed.length === 0) return [skip('no release is missed')];
  const requests = missed.map((one) => requestMissedFile(one, { ...context, config }));
  return (await Promise.all(requests)).flat();
}

type Missed = MissedStatus & { readonly bundle: string };

async function requestMissedFile(missed: Missed, context: MirrorContext): Promise<Judged[]> {
  const bases = context.config.repository.map((mirror) => ({ mirror, base: baseOf(mirror) }));
  const own = bases.find(({ base }) => missed.url?.startsWith(base));
  const path = own === undefined ? undefined : missed.url?.slice(own.base.length);
  if (path === undefined) return [judgeByte({ missed, url: missed.url })];
  const web = bases.filter(({ base }) => base.startsWith('http'));
  if (web.length === 0) return [judgeByte({ missed, url: missed.url })];
  return Promise.all(
    web.map(async ({ mirror, base }) => {
      const answer = await requestFirstByte(mirror, new URL(base), path, context);
      return judgeByte({ missed, url: `${base}${path}`, ...answer });
    }),
  );
}

function baseOf({ url }: MirrorConfig): string {
  const { href } = new URL(url);
  return href.endsWith('/') ? href : `${href}/`;
}

const totalTimeoutMs = 15_000;

async function requestFirstByte(
  mirror: MirrorConfig,
  base: URL,
  path: string,
  context: MirrorContext,
): Promise<Pick<ByteFacts, 'status' | 'error'>> {
  const client = openMirrorClient(base, mirror, context);
  try {
    const exchange = await client.open({ path, totalTimeoutMs, headers: { range: 'bytes=0-0' } });
    await exchange.end();
    return { status: exchange.status };
  } catch (error) {
    return { error: toWritError(error) };
  } finally {
    await client.close();
  }
}

export interface ByteFacts {
  readonly missed: Missed;
  /** URL of the file; undefined before the first attempt. */
  readonly url: string | undefined;
  /** HTTP status of the request for the first byte; left out without a request. */
  readonly status?: number;
  readonly error?: CheckFailure;
}

/** @returns a failure if the server does not serve the file; a warning if only the last attempt failed */
export function judgeByte({ missed, url = '', status, error }: ByteFacts): Judged {
  const { bundle, serial, code } = missed;
  const what = serial === undefined ? bundle : `${bundle} ${serial}`;
  if (error !== undefined) return failOf({ ...error, message: `${what}: ${error.message}` });
  if (status === undefined)
    return code === undefined
      ? ok(`${what} is being fetched`)
      : { ...warn(`${what}: the last attempt ended with [${code}] ${url}`.trimEnd(), 'writ status'), code };
  if (status !== 200 && status !== 206)
    return fail(`${what}: ${url} answered with status ${status}`, 'upload the whole repository again', code);
  const text = `${what}: ${url} answered with status ${status} to a request for its first byte`;
  return code === undefined
    ? ok(text)
    : { ...warn(`${text}; the last attempt ended with [${code}]`, 'writ pull'), code };
}
