// The one line of an answer that the rules of users examine, without the lines that the dynamic loader of a host writes.

/** What a program wrote. */
export interface ProgramOutput {
  readonly stdout: string;
  readonly stderr: string;
}

/** All that a regular expression takes for one, or `^` would match in the middle of a line that a policy has written. */
const lineEnd = /[\n\r\u2028\u2029]/;

/**
 * A program that reached no daemon, or a busy one, has read no policy and reports this first. A compiler repeats the lines
 * that it refuses after its own words, so that the author of a policy cannot choose what `match` examines. Complaints are
 * on stderr; progress may be on stdout, with names from the policy.
 */
export function firstLineOf({ stdout, stderr }: ProgramOutput): string {
  const lines = (text: string): string[] => text.split(lineEnd).filter((line) => /[\p{L}\p{N}]/u.test(line));
  return [...lines(withoutLoaderLines(stderr)), ...lines(stdout)][0]?.trim() ?? '';
}

/**
 * Of the dynamic loader of the host, before and beside what a program writes: a preloaded library is missing, or a library
 * comes from another distribution.
 */
const loaderLine = /^ERROR: ld\.so: |^\S+: \S+: no version information available \(required by \S+\)$/;

/** @returns what a program itself wrote to stderr */
export function withoutLoaderLines(stderr: string): string {
  const lines = stderr.split('\n');
  return lines.some((line) => loaderLine.test(line))
    ? lines.filter((line) => !loaderLine.test(line)).join('\n')
    : stderr;
}
