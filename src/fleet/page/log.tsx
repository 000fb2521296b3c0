// The audit log: changes of the fleet with their authors, the newest first, in pages.
import type { LogPage } from '../../core/fleet/answers.js';
import { logAddress } from './addresses.js';
import { type Frame, renderPage } from './layout.js';
import { Moment, Table, UntrustedText } from './parts.js';

/** @returns the page at `/log` */
export function logPage({ entries, next }: LogPage, frame: Frame): string {
  return renderPage({
    ...frame,
    title: 'Log',
    at: '/log',
    children: (
      <>
        <h1>Log</h1>
        {entries.length === 0 ? (
          <p>No change is recorded yet.</p>
        ) : (
          <Table
            caption="Changes of the fleet, newest first"
            columns={['when', 'who', 'what', 'of what', 'how']}
            rows={entries.map(({ atMs, who, what, subject, detail }) => [
              <Moment atMs={atMs} />,
              <UntrustedText text={who} />,
              <UntrustedText text={what} />,
              <UntrustedText text={subject} />,
              <UntrustedText text={detail} />,
            ])}
          />
        )}
        <nav class="pages" aria-label="Pages of the log">
          {next === undefined ? null : (
            <a href={logAddress(next)} rel="next">
              Older
            </a>
          )}
        </nav>
      </>
    ),
  });
}
