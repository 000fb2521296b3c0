// Judges whether an installation is the one that its id was made for: marks of the machine were noted beside the id, and a
// clone has other ones. Owns the shape of what is noted: digests, each with the id in it, so that nobody learns a machine id from
// the file, nor whether two hosts share one. Pure.
import { createHash } from 'node:crypto';

/** What names a machine: systemd's id, the firmware's, the cloud's. */
export const markNames = ['machineId', 'productUuid', 'instanceId'] as const;
export type MarkName = (typeof markNames)[number];

/** As they were read; one that cannot be read, or means nothing here, is left out. */
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
  /** `changed`: the marks that are another machine's; none where there was no id. */
  | { readonly kind: 'new'; readonly next: InstallId; readonly changed: readonly MarkName[] };

/**
 * @param known what was noted; undefined at a first start
 * @param newId taken where the verdict is `new`
 */
export function judgeInstallId(known: InstallId | undefined, read: Marks, newId: string): InstallIdVerdict {
  if (known === undefined) return { kind: 'new', next: noted(newId, read), changed: [] };
  const { marks } = noted(known.id, read);
  // What cannot be read now may be the same as ever: a mark is compared where both are there.
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
