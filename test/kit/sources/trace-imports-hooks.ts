// The module hook of trace-imports, which runs in its own thread.
import { appendFileSync } from 'node:fs';

type Resolve = (specifier: string, context: unknown) => Promise<{ readonly url: string }>;

/** Called by Node for each import. */
export async function resolve(
  specifier: string,
  context: unknown,
  next: Resolve,
): Promise<{ readonly url: string }> {
  const resolved = await next(specifier, context);
  const path = process.env['WRIT_TRACE_IMPORTS'];
  if (path !== undefined) appendFileSync(path, `${resolved.url}\n`);
  return resolved;
}
