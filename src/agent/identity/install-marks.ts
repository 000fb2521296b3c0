// Reads the identifiers of this machine for install-id-rules. In a container it reads nothing: all containers of an image share one
// machine id, the firmware is that of the outer machine, and both may change while a container runs.
import { readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { lstatIfPresent, readSmallFile } from '../../platform/read-file.js';
import type { MarkName, Marks } from './install-id-rules.js';

const maxMarkBytes = 1000;

/** Path and pattern of each: `uninitialized` is not a machine id, and an empty file has none. */
const places: readonly { readonly name: MarkName; readonly path: string; readonly pattern: RegExp }[] = [
  { name: 'machineId', path: 'etc/machine-id', pattern: /^[0-9a-f]{32}$/ },
  { name: 'productUuid', path: 'sys/class/dmi/id/product_uuid', pattern: /^[0-9a-f-]{36}$/ },
  { name: 'instanceId', path: 'var/lib/cloud/data/instance-id', pattern: /^[\x21-\x7e]{1,255}$/ },
];

/** @param root of the file system, as `/`. @returns what can be read */
export function readInstallMarks(root: string): Marks {
  if (isContainer(root)) return {};
  const marks = places.flatMap(({ name, path, pattern }) => {
    const verdict = readSmallFile(join(root, path), { maxBytes: maxMarkBytes });
    if (verdict.kind !== 'read') return [];
    // Kernels write the id of the firmware in upper or lower case.
    const value = verdict.bytes.toString('latin1').trim().toLowerCase();
    return pattern.test(value) ? [[name, value]] : [];
  });
  return Object.fromEntries(marks);
}

/** Files that container managers create. */
const signs = ['.dockerenv', 'run/.containerenv', 'run/systemd/container'];

/** The number of the first process namespace (PROC_PID_INIT_INO of the kernel). */
const firstNamespace = 'pid:[4026531836]';

function isContainer(root: string): boolean {
  if (signs.some((sign) => lstatIfPresent(join(root, sign)) !== undefined)) return true;
  const namespace = readIfPresent(() => readlinkSync(join(root, 'proc/self/ns/pid')));
  if (namespace !== undefined && namespace !== firstNamespace) return true;
  // A container that shares the process namespace of the machine has another root directory than process 1.
  const [ours, first] = [root, join(root, 'proc/1/root')].map((path) => readIfPresent(() => statSync(path)));
  return first !== undefined && (ours?.dev !== first.dev || ours.ino !== first.ino);
}

/** @returns undefined for a missing file, or without permission to read it */
function readIfPresent<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
