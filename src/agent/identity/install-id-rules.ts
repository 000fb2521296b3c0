// Decides whether an installation runs on the machine for which its id was created: the file has marks of that machine, and a clone
// has other marks. A mark is stored as a digest that includes the id, so that the file shows neither a machine id nor whether two hosts
// share one. Pure.
import { createHash } from 'node:crypto';

/** Identifiers of a machine: of systemd, of its firmware, of the cloud. */
export const markNames = ['machineId', 'productUuid', 'instanceId'] as const;
export type MarkName = (typeof markNames)[number];

/** As they were read; an unreadable or meaningless one is left out. */
export type Marks = Readonly<Partial<Record<MarkName, string>>>;

export interface InstallId {
  readonly writ: 1;
  /** 32 lower-case hex digits. */
  readonly id: string;
  /** Digests. */
  readonly marks: Marks;
}

export type InstallIdVerdict =
  /** `next`: with the marks that can be read for the first time. */
  | { readonly kind: 'keep'; readonly next: InstallId }
  /** `changed`: the marks that differ; empty without an earlier id. */
  | { readonly kind: 'new'; readonly next: InstallId; readonly changed: readonly MarkName[] };

/**
 * Decides whether the id of an installation belongs to this machine. Pure; throws nothing.
 * @param known content of the file; undefined at a first start: the verdict is `new` with an empty `changed`
 * @param newId used if the verdict is `new`; 32 lower-case hex digits
 * @returns `new` if a mark differs that both the file and `read` have, with these marks in `changed`. Otherwise `keep` with the
 *   known id, and the digests of marks that were not known before. A mark that cannot be read now stays and counts as equal
 */
export function judgeInstallId(known: InstallId | undefined, read: Marks, newId: string): InstallIdVerdict {
  if (known === undefined) return { kind: 'new', next: noted(newId, read), changed: [] };
  const { marks } = noted(known.id, read);
  // A mark is compared only if both values exist, because an unreadable one may be unchanged.
  const changed = markNames.filter((name) => {
    const [before, now] = [known.marks[name], marks[name]];
    return before !== undefined && now !== undefined && before !== now;
  });
  if (changed.length > 0) return { kind: 'new', next: noted(newId, read), changed };
  return { kind: 'keep', next: { ...known, marks: { ...known.marks, ...marks } } };
}

function noted(id: string, read: Marks): InstallId {
  const marks = markNames.flatMap((name) => {
    const value = read[name];
    return value === undefined ? [] : [[name, digestOf(id, name, value)]];
  });
  return { writ: 1, id, marks: Object.fromEntries(marks) };
}

function digestOf(id: string, name: MarkName, value: string): string {
  const digest = createHash('sha256').update(`writ-install-mark-1\0${id}\0${name}\0${value}`).digest('hex');
  return `sha256:${digest}`;
}
