// Whether a release that this host misses can be had: one byte of the file that the last attempt wanted is asked for at each mirror.
// What comes is read by nobody and changes nothing. The judge is pure.
import type { MirrorConfig } from '../../core/config/config.js';
import { toWritError } from '../../core/errors.js';
import type { MissedStatus } from '../../core/status/missed-release.js';
import { type Asker, openMirrorDoor } from './check-server.js';
import { type Checks, type DoctorContext, reportOf } from './doctor-context.js';
import { fail, failOf, type Judged, ok, skip, type Trouble, warn } from './judged.js';

export function releaseChecks(context: DoctorContext): Checks {
  return [['release', () => examineReleases(context)]];
}

async function examineReleases(context: DoctorContext): Promise<Judged[]> {
  const { config } = context;
  const missed = (reportOf(context)?.bundles ?? []).flatMap(({ bundle, missed: one }) =>
    one === undefined ? [] : { bundle, ...one },
  );
  if (config === undefined || missed.length === 0) return [skip('no release is missed')];
  const looks = missed.map((one) => lookAtFile(one, { ...context, config }));
  return (await Promise.all(looks)).flat();
}

type Missed = MissedStatus & { readonly bundle: string };

async function lookAtFile(missed: Missed, asker: Asker): Promise<Judged[]> {
  const bases = asker.config.repository.map((mirror) => ({ mirror, base: baseOf(mirror) }));
  const own = bases.find(({ base }) => missed.url?.startsWith(base));
  const path = own === undefined ? undefined : missed.url?.slice(own.base.length);
  if (path === undefined) return [judgeByte({ missed, url: missed.url })];
  const web = bases.filter(({ base }) => base.startsWith('http'));
  if (web.length === 0) return [judgeByte({ missed, url: missed.url })];
  return Promise.all(
    web.map(async ({ mirror, base }) => {
      const answer = await askByte(mirror, new URL(base), path, asker);
      return judgeByte({ missed, url: `${base}${path}`, ...answer });
    }),
  );
}

function baseOf({ url }: MirrorConfig): string {
  const { href } = new URL(url);
  return href.endsWith('/') ? href : `${href}/`;
}

const totalTimeoutMs = 15_000;

async function askByte(
  mirror: MirrorConfig,
  base: URL,
  path: string,
  asker: Asker,
): Promise<Pick<ByteFacts, 'status' | 'error'>> {
  const door = openMirrorDoor(base, mirror, asker);
  try {
    const exchange = await door.open({ path, totalTimeoutMs, headers: { range: 'bytes=0-0' } });
    await exchange.end();
    return { status: exchange.status };
  } catch (error) {
    return { error: toWritError(error) };
  } finally {
    await door.close();
  }
}

export interface ByteFacts {
  readonly missed: Missed;
  /** Of the file; undefined where no attempt has named one yet. */
  readonly url: string | undefined;
  /** Of the answer to a request for its first byte; left out where it was not asked for. */
  readonly status?: number;
  readonly error?: Trouble;
}

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
