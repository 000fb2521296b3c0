// STATE/install-id.json: the random id of this installation, created at the first start of an agent, and again on a machine that was
// cloned. The host's time to poll comes from it, so that clones of one image do not ask in the same second. Never keeps an agent
// from starting, and is no part of the policy: a command without an agent does not read it.
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

/** What an id is made of; a test brings its own. */
export interface InstallSource {
  /** @returns 32 hex digits that nobody else has */
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
 * Makes sure that this installation has an id of its own; the caller holds the lock. The file of a later version is kept as
 * it is, and so is the id that it names: after a downgrade the host asks at the same phase, and an upgrade finds its file.
 * @returns the id; one that the disk could not take is of this process alone
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

/** @returns the id that the file of a later version names; its marks are not judged, for their meaning is not known here */
function idOfLaterVersion(path: string): string | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxLaterBytes });
  if (verdict.kind !== 'read') return undefined;
  const { id } = unsealed(verdict.bytes.toString('utf8')) as { readonly id?: unknown };
  return typeof id === 'string' && idPattern.test(id) ? id : undefined;
}
