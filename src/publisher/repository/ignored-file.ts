// A newer file of a role that is not published, because hosts would refuse it: the cause and the remedy. Pure.
import type { ErrorCode, WritError } from '../../core/errors.js';

export interface IgnoredFile {
  /** As `2.dns-team.json`. */
  readonly name: string;
  readonly cause: WritError;
}

/** Codes for files below targets/ that were not uploaded, or not completely. */
const archiveCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'TARGET_MISSING',
  'DOWNLOAD_TRUNCATED',
  'DOWNLOAD_TOO_LARGE',
  'DOWNLOAD_DIGEST',
]);

/** @returns as `2.dns-team.json cannot be published: the archive targets/… is missing [TARGET_MISSING]` */
export function ignoredText({ name, cause }: IgnoredFile): string {
  return `${name} cannot be published: ${cause.message} [${cause.code}]`;
}

/** @returns the remedy that makes the file, or a newer one of its role, acceptable */
export function ignoredHint({ name, cause }: IgnoredFile): string {
  const role = name.replace(/^\d+\.(.*)\.json$/, '$1');
  if (archiveCodes.has(cause.code))
    return `Upload targets/ of the repository in which ${role} signed, then run \`writ refresh\`.`;
  if (cause.code === 'METADATA_EXPIRED') return `Run \`writ sign --role ${role}\` with its keys.`;
  return `Publish again, with the keys of ${role}.`;
}

/** @param name of a listed file of a team that is missing or differs. @returns the remedy */
export function damagedHint(name: string): string {
  return `Restore metadata/${name} from a copy of the repository. If a stolen key listed a file that never existed: docs/operations.md, "A stolen online key".`;
}

/** @returns the members for --json: the names alone, and each name with its cause */
export function ignoredDetails(files: readonly IgnoredFile[]): Readonly<Record<string, unknown>> {
  return {
    ignored: files.map(({ name }) => name),
    ignoredCauses: files.map(({ name, cause }) => ({ name, code: cause.code, message: cause.message })),
  };
}
