// Paths inside a repository, made from names in metadata, which may be any text. Each segment is percent-encoded, so that a name
// such as `../x`, `a?b` or `#` stays one name.
import { WritError } from '../../core/errors.js';

/** @returns the segments as one path; a slash inside a segment is encoded */
export function encodePath(...segments: readonly string[]): string {
  return segments.map((segment) => encodeURIComponent(segment)).join('/');
}

/**
 * @returns the decoded segments of a path that stays inside the repository
 * @throws WritError METADATA_MALFORMED for `.`, `..`, an empty segment, a NUL or an invalid escape
 */
export function decodePath(path: string): readonly string[] {
  return path.split('/').map((segment) => {
    const name = decodeSegment(segment);
    if (name === undefined || name === '' || name === '.' || name === '..' || name.includes('\0')) {
      throw new WritError('METADATA_MALFORMED', `the path ${JSON.stringify(path.slice(0, 200))} is not one`, {
        facts: { path: path.slice(0, 200) },
      });
    }
    return name;
  });
}

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
