// Routes of the forms that sign in and out. The token is sent in the body of one request; the response sets a session cookie.
// PageAuthentication verifies tokens and owns sessions; the routes decide only where a form redirects to.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isWritError } from '../../core/errors.js';
import type { Role } from '../../core/fleet/answers.js';
import { ownPath } from './addresses.js';
import type { Frame, Visitor } from './layout.js';
import { signInPage } from './sign-in.js';

/** The parts of a request that identify its caller. */
type RequestCredentials = Pick<FastifyRequest, 'headers' | 'ip'>;

export interface PageAuthentication {
  /** @returns the caller of a request; undefined without valid credentials */
  visitorOf(asking: RequestCredentials): Promise<(Visitor & { readonly role: Role }) | undefined>;
  /** @returns the value of Set-Cookie. @throws FLEET_TOKEN_REFUSED, FLEET_REFUSED_OFTEN; FLEET_FORBIDDEN for a form of another site */
  signIn(token: string, asking: RequestCredentials): Promise<string>;
  /** @returns the value of Set-Cookie that deletes the cookie. @throws FLEET_FORBIDDEN for a form of another site */
  signOut(headers: IncomingHttpHeaders): Promise<string>;
}

interface SignInParts {
  readonly authentication: PageAuthentication;
  readonly frameOf: (request: FastifyRequest) => Frame;
}

/**
 * Adds GET and POST `/sign-in`, and POST `/sign-out`. A refused token gets the form again with 401; other errors are
 * thrown.
 * After the sign-in the browser is redirected to a path of this server only, never to another site.
 */
export function registerSignIn(scope: FastifyInstance, { authentication, frameOf }: SignInParts): void {
  scope.get('/sign-in', (request, reply) => {
    const next = new URL(request.url, 'http://own').searchParams.get('next') ?? '/';
    return reply.type('text/html; charset=utf-8').send(signInPage({ next: ownPath(next) }, frameOf(request)));
  });
  scope.post('/sign-in', { bodyLimit: 8192 }, async (request, reply) => {
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    const next = ownPath(form.get('next') ?? '/');
    try {
      const cookie = await authentication.signIn((form.get('token') ?? '').trim(), request);
      return await reply.header('set-cookie', cookie).redirect(next, 303);
    } catch (error) {
      if (!isWritError(error) || error.code !== 'FLEET_TOKEN_REFUSED') throw error;
      const refused = 'This token was not accepted. Was it copied completely?';
      const page = signInPage({ next, refused }, frameOf(request));
      return reply.code(401).type('text/html; charset=utf-8').send(page);
    }
  });
  scope.post('/sign-out', { bodyLimit: 8192 }, async (request, reply) =>
    reply.header('set-cookie', await authentication.signOut(request.headers)).redirect('/sign-in', 303),
  );
}
