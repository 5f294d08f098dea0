import type { IAuthenticateGeneric, ICredentialTestRequest, ICredentialType, INodeProperties } from 'n8n-workflow';

/** Where semel is, and the token it asks for. `semel up` asks for none. */
export class SemelApi implements ICredentialType {
    name = 'semelApi';
    displayName = 'semel API';
    properties: INodeProperties[] = [
        { displayName: 'URL', name: 'url', type: 'string', default: 'http://127.0.0.1:7363', description: 'Where the daemon listens, without /v1' },
        { displayName: 'Token', name: 'token', type: 'string', typeOptions: { password: true }, default: '', description: 'A token with the scope claim; empty for semel up' },
    ];
    authenticate: IAuthenticateGeneric = {
        type: 'generic',
        properties: { headers: { Authorization: '={{ $credentials.token ? "Bearer " + $credentials.token : undefined }}' } },
    };
    test: ICredentialTestRequest = { request: { baseURL: '={{ $credentials.url }}', url: '/readyz' } };
}
