// Reads what names this machine, for install-id-rules. In a container it reads nothing: an image carries one machine id to all of
// its containers, the firmware is the machine's around them, and both may change under a container that goes on.
import { readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { lstatIfPresent, readSmallFile } from '../../platform/read-file.js';
import type { MarkName, Marks } from './install-id-rules.js';

const maxMarkBytes = 1000;

/** Where each lies, and what it must look like: `uninitialized` is no machine id, and an empty file names nothing. */
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
    // Kernels have written the firmware's in capitals and in small letters.
    const value = verdict.bytes.toString('latin1').trim().toLowerCase();
    return pattern.test(value) ? [[name, value]] : [];
  });
  return Object.fromEntries(marks);
}

/** Written by those who start containers. */
const signs = ['.dockerenv', 'run/.containerenv', 'run/systemd/container'];

/** The kernel gives the first namespace of processes this number (PROC_PID_INIT_INO). */
const firstNamespace = 'pid:[4026531836]';

function isContainer(root: string): boolean {
  if (signs.some((sign) => lstatIfPresent(join(root, sign)) !== undefined)) return true;
  const namespace = unlessUnseen(() => readlinkSync(join(root, 'proc/self/ns/pid')));
  if (namespace !== undefined && namespace !== firstNamespace) return true;
  // One that shares the processes of the machine has another root than the first of them.
  const [ours, first] = [root, join(root, 'proc/1/root')].map((path) => unlessUnseen(() => statSync(path)));
  return first !== undefined && (ours?.dev !== first.dev || ours.ino !== first.ino);
}

/** @returns undefined where it is not there, or this user may not look */
function unlessUnseen<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
