// Extracts the line of an answer that configured rules examine, without lines of the host's dynamic loader.

/** Output of a program. */
export interface ProgramOutput {
  readonly stdout: string;
  readonly stderr: string;
}

/** All line ends of regular expressions. Otherwise `^` could match within a line that a policy contains. */
const lineEnd = /[\n\r\u2028\u2029]/;

/**
 * Returns the first line. A program that reached no daemon or a busy one has read no policy, and reports this first. A compiler prints
 * its own text before lines of the policy, so that the author of a policy cannot control what `match` examines. Errors are on stderr;
 * stdout may have progress, with names from the policy.
 */
export function firstLineOf({ stdout, stderr }: ProgramOutput): string {
  const lines = (text: string): string[] => text.split(lineEnd).filter((line) => /[\p{L}\p{N}]/u.test(line));
  return [...lines(withoutLoaderLines(stderr)), ...lines(stdout)][0]?.trim() ?? '';
}

/**
 * Lines of the host's dynamic loader in the output of a program: a preloaded library is missing, or a library is of another
 * distribution.
 */
const loaderLine = /^ERROR: ld\.so: |^\S+: \S+: no version information available \(required by \S+\)$/;

/** @returns stderr without lines of the dynamic loader */
export function withoutLoaderLines(stderr: string): string {
  const lines = stderr.split('\n');
  return lines.some((line) => loaderLine.test(line))
    ? lines.filter((line) => !loaderLine.test(line)).join('\n')
    : stderr;
}
