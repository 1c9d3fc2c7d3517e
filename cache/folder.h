/*
 * Folders before anything is opened in them: made, looked at, trusted or refused.
 *
 * Stored cubins are code that will run, so who could have written them is checked first. Takes no lock.
 */
#ifndef CBN_CACHE_FOLDER_H
#define CBN_CACHE_FOLDER_H

#include <sys/stat.h>

#include "cache/cabinet.h"

/* Makes path and its missing parents: 0700, parents 0755 under the umask. OK or IO. */
int32_t cbn__folder_create(const char *path, struct cbn_error *err);

/*
 * Gives a file that was just made as path to whom its folder is shared with, whatever the umask: 0660 and the folder's
 * group where the group may write the folder and this process may give it away, else 0600. What root makes in a
 * user's folder (trusted by override) is that user's. 0, or -1 and errno.
 */
int cbn__folder_share_file(int fd, const char *path);

/* The folder's lock could be taken shared just now. OK; NOT_FOUND: no lock file; TIMEOUT: held for so long; IO. */
int32_t cbn__folder_probe_lock(const char *path, uint32_t timeout_ms, struct cbn_error *err);

/* "ext4", "nfs", "0x1234"; true when it is one of those known to be local. A missing folder is where it would be made.
 */
bool cbn__folder_is_local(const char *path, char *ret_name, size_t name_bytes);

struct cbn__trust {
    bool trusted;
    bool group_shared; /* another's or one's own, writable by a group that this process is in */
    char problem[256];
    char mend[256];
};

/*
 * The rules, over path as given (its symbolic links) and the folder it leads to: owned by this user or root, or
 * shared with a group of this process; not writable by everyone, nor placed where everyone can replace it; no
 * symbolic link of another user's, none into another user's folder.
 */
void cbn__trust_folder(const char *path, struct cbn__trust *ret_trust);
/*
 * A pack, which is open as file: the same rules over the file and over the folder that it lies in. Reading is enough:
 * whether the folder could be listed does not matter.
 */
void cbn__trust_pack(const char *path, const struct stat *file, struct cbn__trust *ret_trust);
/* A file inside of a trusted folder: regular, not writable by everyone, an owner whom the folder's rules accept. */
bool cbn__trust_file(const struct stat *file, const struct stat *folder, bool group_shared);

#endif
