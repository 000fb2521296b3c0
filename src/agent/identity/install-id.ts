// STATE/install-id.json: the random id of this installation, created at the first start of an agent, and again on a cloned machine. The
// poll time of the host is derived from it, so that clones of one image do not poll in the same second. An error in the file never
// prevents the start of an agent. A command without an agent does not read it.
import { randomBytes } from 'node:crypto';
import { isWritError } from '../../core/errors.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { HostPaths } from '../state/paths.js';
import { unsealed } from '../state/sealed-json.js';
import { openStateFile } from '../state/state-file.js';
import { type InstallId, judgeInstallId, type Marks, markNames } from './install-id-rules.js';
import { readInstallMarks } from './install-marks.js';

const idPattern = /^[0-9a-f]{32}$/;

const maxLaterBytes = 64_000;

const digest = { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' };

/** JSON Schema of install-id.json. */
export const installIdSchema = {
  type: 'object',
  required: ['writ', 'id', 'marks'],
  properties: {
    writ: { const: 1 },
    id: { type: 'string', pattern: idPattern.source },
    marks: { type: 'object', properties: Object.fromEntries(markNames.map((name) => [name, digest])) },
  },
};

/** The random id and the marks of the machine; a test has its own. */
export interface InstallSource {
  /** @returns 32 random hex digits */
  newId(): string;
  readMarks(): Marks;
}

export const thisMachine: InstallSource = {
  newId: () => randomBytes(16).toString('hex'),
  readMarks: () => readInstallMarks('/'),
};

interface InstallIdHost {
  readonly paths: Pick<HostPaths, 'installId'>;
  readonly durable: DurableFs;
  readonly log: Logger;
}

/**
 * Reads or creates the id of this installation; the caller holds the lock. The file of a later version stays unchanged, and its id is
 * used: after a downgrade the host polls at the same time, and an upgrade finds its file.
 * @returns the id; only valid for this process if the disk could not store it
 */
export function openInstallId({ paths, durable, log }: InstallIdHost, source: InstallSource): string {
  let id = source.newId();
  try {
    const initial: InstallId = { writ: 1, id, marks: {} };
    const path = paths.installId;
    const file = openStateFile({ path, op: 'install-id', schema: installIdSchema, initial, durable });
    const found = file.condition();
    if (isWritError(found)) log.warn({ err: found }, 'a new install id is created');
    const verdict = judgeInstallId(found === 'intact' ? file.read() : undefined, source.readMarks(), id);
    const changed = verdict.kind === 'new' ? verdict.changed : [];
    if (changed.length > 0) log.warn({ changed }, 'this is another machine: it gets a new install id');
    id = verdict.next.id;
    file.replace(verdict.next);
  } catch (error) {
    if (!isWritError(error)) throw error;
    log.warn({ err: error }, 'the install id could not be kept');
    if (error.code === 'STATE_TOO_NEW') id = idOfLaterVersion(paths.installId) ?? id;
  }
  return id;
}

/** @returns the id in the file of a later version; its marks are not compared, because their meaning is unknown here */
function idOfLaterVersion(path: string): string | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxLaterBytes });
  if (verdict.kind !== 'read') return undefined;
  const { id } = unsealed(verdict.bytes.toString('utf8')) as { readonly id?: unknown };
  return typeof id === 'string' && idPattern.test(id) ? id : undefined;
}
